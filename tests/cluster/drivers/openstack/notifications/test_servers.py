"""Nova's notifications about instances update servers."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from cluster.models import Server, Synchronization
from cluster.operations.synchronization import synchronize
from tests.cluster.drivers.openstack.notifications.samples import SERVER, ago, flavor, handle, instance
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.server import Emulator

pytestmark = pytest.mark.django_db
NEW = make_uuid("new")


def get(uuid: str = SERVER) -> Server:
    found: Server = Server.objects.select_related("node").get(uuid=uuid)
    return found


def test_created_server_has_the_same_values_as_after_a_synchronization(synced: Emulator) -> None:
    columns = {"uuid": NEW, "display_name": "new", "host": "compute2", "metadata": {"role": "db"}, "locked": True}
    small = flavor(name="m1.tiny", vcpus=1, memory_mb=512, root_gb=5, ephemeral_gb=2, swap=1500)
    assert handle("instance.create.end", instance("InstanceCreatePayload", "1.13", **columns, flavor=small))
    server = get(NEW)
    assert (server.name, str(server.node), server.state, server.locked) == ("new", "compute2", "active", True)
    assert (server.flavor, server.vcpus, server.memory, server.disk) == ("m1.tiny", 1, 512, 9)
    assert (server.metadata, server.project_id, server.user_id) == ({"role": "db"}, "a project", "fake")
    assert server.flavor_extra_specs == {"hw:watchdog_action": "disabled"}
    assert str(server.created_at) == "2026-03-01 10:00:00+00:00"


def test_server_that_boots_from_a_volume_uses_no_disk_of_its_node(synced: Emulator) -> None:
    handle("instance.create.end", instance("InstanceCreatePayload", "1.13", uuid=NEW, image_uuid=""))
    assert get(NEW).disk == 0


def test_synchronization_after_a_notification_changes_nothing(synced: Emulator) -> None:
    synced.nova.servers[SERVER]["OS-EXT-SRV-ATTR:host"] = "compute2"
    image = synced.nova.servers[SERVER]["image"]["id"]
    plain = flavor(extra_specs={})
    handle(
        "instance.live_migration_post_dest.end",
        instance(
            host="compute2",
            image_uuid=image,
            flavor=plain,
            user_id=synced.nova.servers[SERVER]["user_id"],
            launched_at="2026-03-01T10:00:30Z",
        ),
    )
    before = get().updated_at
    synchronize()
    assert (str(get().node), get().updated_at) == ("compute2", before)


@pytest.mark.parametrize(
    ("event", "columns", "expected"),
    [
        ("instance.power_off.end", {"state": "stopped", "power_state": "shutdown"}, {"state": "stopped"}),
        ("instance.power_on.end", {"state": "active"}, {"state": "active"}),
        ("instance.pause.end", {"state": "paused"}, {"state": "paused"}),
        ("instance.unpause.end", {"state": "active"}, {"state": "active"}),
        ("instance.suspend.end", {"state": "suspended"}, {"state": "suspended"}),
        ("instance.resume.end", {"state": "active"}, {"state": "active"}),
        ("instance.rescue.end", {"state": "rescued"}, {"state": "rescued"}),
        ("instance.unrescue.end", {"state": "active"}, {"state": "active"}),
        ("instance.live_migration_rollback.end", {"task_state": None}, {"task_state": None}),
        ("instance.resize_finish.end", {"state": "resized"}, {"state": "resized"}),
        ("instance.resize_revert.end", {"state": "active"}, {"state": "active"}),
        ("instance.shelve.end", {"state": "shelved"}, {"state": "shelved"}),
        ("instance.shelve_offload.end", {"state": "shelved_offloaded"}, {"state": "shelved"}),
        ("instance.unshelve.end", {"state": "active"}, {"state": "active"}),
        ("instance.lock", {"locked": True}, {"locked": True}),
        ("instance.unlock", {"locked": False}, {"locked": False}),
        ("instance.reboot.end", {"task_state": "rebooting"}, {"task_state": "rebooting"}),
        ("instance.rebuild.end", {"display_name": "renamed"}, {"name": "renamed"}),
    ],
)
def test_event_updates_its_field(
    synced: Emulator, event: str, columns: dict[str, Any], expected: dict[str, Any]
) -> None:
    Server.objects.update(locked=True, state="error", task_state="migrating")
    assert handle(event, instance(**{"locked": True, **columns}))
    assert {name: getattr(get(), name) for name in expected} == expected


def test_shelved_server_without_a_host_has_no_node(synced: Emulator) -> None:
    handle("instance.shelve_offload.end", instance(state="shelved_offloaded", host=None))
    assert get().node is None


@pytest.mark.parametrize("version", ["1.0", "2.1"])
def test_instance_updates_of_both_major_versions_are_accepted(synced: Emulator, version: str) -> None:
    handle("instance.update", instance("InstanceUpdatePayload", version, state="error", task_state="deleting"))
    assert (get().state, get().task_state) == ("error", "deleting")


def test_migrated_server_is_on_its_new_node(synced: Emulator) -> None:
    handle("instance.live_migration_post_dest.end", instance(host="compute2"))
    assert str(get().node) == "compute2"


def test_resized_server_has_the_size_of_its_new_flavor(synced: Emulator) -> None:
    large = flavor(name="m1.large", vcpus=4, memory_mb=8192)
    handle("instance.resize_confirm.end", instance(flavor=large, host="compute2"))
    assert (get().flavor, get().vcpus, get().memory, str(get().node)) == ("m1.large", 4, 8192, "compute2")


def test_server_on_an_unknown_host_has_no_node(synced: Emulator) -> None:
    handle("instance.live_migration_post_dest.end", instance(host="compute9"))
    assert get().node is None


def test_fault_is_cleared_when_a_server_leaves_error(synced: Emulator) -> None:
    Server.objects.update(state="error", fault={"message": "no"})
    handle("instance.rebuild.end", instance("InstanceActionRebuildPayload", "1.10"))
    assert (get().state, get().fault) == ("active", None)


def test_pending_server_stays_pending_when_nova_reports_error(synced: Emulator) -> None:
    Server.objects.update(state="pending", node=None)
    handle("instance.update", instance("InstanceUpdatePayload", "2.1", state="error", host=None, launched_at=None))
    assert get().state == "pending"


def test_pending_notification_of_the_site_is_ignored(synced: Emulator) -> None:
    assert not handle("instance.update", instance("InstanceUpdatePayload", "2.1", state="pending"))


@pytest.mark.parametrize("event", ["instance.delete.end", "instance.soft_delete.end"])
def test_deleted_server_is_marked_deleted(synced: Emulator, event: str) -> None:
    handle(event, instance(state="deleted"))
    assert get().deleted_at


def test_deletion_of_an_unknown_server_is_ignored(synced: Emulator) -> None:
    assert not handle("instance.delete.end", instance(uuid=NEW))


def test_update_with_the_state_deleted_marks_the_server_deleted(synced: Emulator) -> None:
    handle("instance.update", instance("InstanceUpdatePayload", "2.1", state="deleted"))
    assert get().deleted_at


def test_restored_server_is_no_longer_deleted(synced: Emulator) -> None:
    handle("instance.soft_delete.end", instance(state="soft-delete"), ago(2))
    handle("instance.restore.end", instance())
    assert not get().deleted_at


def test_update_does_not_restore_a_deleted_server(synced: Emulator) -> None:
    handle("instance.delete.end", instance(), ago(2))
    assert not handle("instance.update", instance("InstanceUpdatePayload", "2.1"))
    assert get().deleted_at


def test_older_notification_is_ignored(synced: Emulator) -> None:
    handle("instance.power_off.end", instance(state="stopped"), ago(1))
    assert not handle("instance.power_on.end", instance(state="active"), ago(2))
    assert get().state == "stopped"


def test_duplicate_notification_changes_nothing(synced: Emulator) -> None:
    time = ago(1)
    handle("instance.power_off.end", instance(state="stopped"), time)
    columns = Server.objects.values().get(uuid=SERVER)
    handle("instance.power_off.end", instance(state="stopped"), time)
    assert Server.objects.values().get(uuid=SERVER) == columns


def test_later_notification_with_an_earlier_update_time_is_ignored(synced: Emulator) -> None:
    """One of two Nova processes still holds the server without the change by the other."""
    earlier, later = "2026-11-22T10:00:00Z", "2026-11-22T10:00:05Z"
    handle("instance.live_migration_post_dest.end", instance(host="compute2", updated_at=later), ago(2))
    assert not handle("instance.update", instance("InstanceUpdatePayload", "2.1", updated_at=earlier), ago(1))
    assert str(get().node) == "compute2"


def test_soft_deletion_older_than_the_restoration_is_ignored(synced: Emulator) -> None:
    handle("instance.restore.end", instance(), ago(1))
    assert not handle("instance.soft_delete.end", instance(state="soft-delete"), ago(2))
    assert not get().deleted_at


def test_deletion_with_an_earlier_timestamp_than_the_last_update_is_applied(synced: Emulator) -> None:
    handle("instance.update", instance("InstanceUpdatePayload", "2.1", task_state="deleting"), ago(1))
    assert handle("instance.delete.end", instance(), ago(2))


def test_notification_before_the_last_synchronization_is_ignored(synced: Emulator) -> None:
    Synchronization.objects.update(succeeded_at=ago(5))
    assert not handle("instance.power_off.end", instance(state="stopped"), ago(6))
    assert not handle("instance.create.end", instance("InstanceCreatePayload", "1.13", uuid=NEW), ago(6))
    assert not handle("instance.delete.end", instance(), ago(6))
    assert (get().state, Server.objects.present().count()) == ("active", 1)


def test_notification_before_the_synchronized_update_time_is_ignored(synced: Emulator) -> None:
    """The change was made during the synchronization, so its start time does not decide."""
    Server.objects.update(cloud_updated_at=ago(10))
    assert not handle("instance.power_off.end", instance(state="stopped"), ago(11))
    assert handle("instance.power_off.end", instance(state="stopped"), ago(9))


def test_updated_at_is_the_time_of_the_notification(synced: Emulator) -> None:
    time = ago(3)
    handle("instance.power_off.end", instance(state="stopped"), time)
    assert (get().updated_at, get().reported_at) == (time, time)


def test_notification_uses_7_queries(synced: Emulator, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(7):  # Two of them open and close a savepoint of the test.
        handle("instance.power_off.end", instance(state="stopped"), timezone.now() - timedelta(seconds=1))
