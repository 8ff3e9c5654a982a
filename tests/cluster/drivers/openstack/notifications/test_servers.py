"""Nova's notifications about instances change servers."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from cluster.models import Server, Synchronization
from cluster.operations.synchronization import synchronize
from tests.cluster.drivers.openstack.notifications.samples import SERVER, ago, flavor, hear, instance
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.server import Emulator

pytestmark = pytest.mark.django_db
NEW = make_uuid("new")


def get(uuid: str = SERVER) -> Server:
    found: Server = Server.objects.select_related("node").get(uuid=uuid)
    return found


def test_a_created_server_is_written_with_what_a_reading_would_know(read: Emulator) -> None:
    columns = {"uuid": NEW, "display_name": "new", "host": "compute2", "metadata": {"role": "db"}, "locked": True}
    small = flavor(name="m1.tiny", vcpus=1, memory_mb=512, root_gb=5, ephemeral_gb=2, swap=1500)
    assert hear("instance.create.end", instance("InstanceCreatePayload", "1.13", **columns, flavor=small))
    server = get(NEW)
    assert (server.name, str(server.node), server.state, server.locked) == ("new", "compute2", "active", True)
    assert (server.flavor, server.vcpus, server.memory, server.disk) == ("m1.tiny", 1, 512, 9)
    assert (server.metadata, server.project_id, server.user_id) == ({"role": "db"}, "a project", "fake")
    assert server.flavor_extra_specs == {"hw:watchdog_action": "disabled"}
    assert str(server.created_at) == "2026-03-01 10:00:00+00:00"


def test_a_server_whose_root_disk_is_a_volume_takes_no_disk_of_its_node(read: Emulator) -> None:
    hear("instance.create.end", instance("InstanceCreatePayload", "1.13", uuid=NEW, image_uuid=""))
    assert get(NEW).disk == 0


def test_the_next_reading_finds_nothing_to_change_of_a_server_that_was_notified(read: Emulator) -> None:
    read.nova.servers[SERVER]["OS-EXT-SRV-ATTR:host"] = "compute2"
    image = read.nova.servers[SERVER]["image"]["id"]
    plain = flavor(extra_specs={})
    hear(
        "instance.live_migration_post_dest.end",
        instance(
            host="compute2",
            image_uuid=image,
            flavor=plain,
            user_id=read.nova.servers[SERVER]["user_id"],
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
        ("instance.suspend.end", {"state": "suspended"}, {"state": "suspended"}),
        ("instance.rescue.end", {"state": "rescued"}, {"state": "rescued"}),
        ("instance.resize_finish.end", {"state": "resized"}, {"state": "resized"}),
        ("instance.shelve_offload.end", {"state": "shelved_offloaded"}, {"state": "shelved"}),
        ("instance.lock", {"locked": True}, {"locked": True}),
        ("instance.unlock", {"locked": False}, {"locked": False}),
        ("instance.reboot.end", {"task_state": "rebooting"}, {"task_state": "rebooting"}),
        ("instance.rebuild.end", {"display_name": "renamed"}, {"name": "renamed"}),
    ],
)
def test_an_event_changes_what_it_is_about(
    read: Emulator, event: str, columns: dict[str, Any], expected: dict[str, Any]
) -> None:
    Server.objects.update(locked=True)
    assert hear(event, instance(**{"locked": True, **columns}))
    assert {name: getattr(get(), name) for name in expected} == expected


def test_a_server_that_left_its_node_when_it_was_shelved_is_on_none(read: Emulator) -> None:
    hear("instance.shelve_offload.end", instance(state="shelved_offloaded", host=None))
    assert get().node is None


@pytest.mark.parametrize("version", ["1.0", "2.1"])
def test_updates_of_both_major_versions_are_read(read: Emulator, version: str) -> None:
    hear("instance.update", instance("InstanceUpdatePayload", version, state="error", task_state="deleting"))
    assert (get().state, get().task_state) == ("error", "deleting")


def test_a_server_that_was_migrated_is_on_its_new_node(read: Emulator) -> None:
    hear("instance.live_migration_post_dest.end", instance(host="compute2"))
    assert str(get().node) == "compute2"


def test_a_resized_server_takes_what_its_new_flavor_gives(read: Emulator) -> None:
    large = flavor(name="m1.large", vcpus=4, memory_mb=8192)
    hear("instance.resize_confirm.end", instance(flavor=large, host="compute2"))
    assert (get().flavor, get().vcpus, get().memory, str(get().node)) == ("m1.large", 4, 8192, "compute2")


def test_a_server_on_a_host_that_was_not_read_yet_is_on_no_node(read: Emulator) -> None:
    hear("instance.live_migration_post_dest.end", instance(host="compute9"))
    assert get().node is None


def test_a_server_that_left_error_has_no_fault(read: Emulator) -> None:
    Server.objects.update(state="error", fault={"message": "no"})
    hear("instance.rebuild.end", instance("InstanceActionRebuildPayload", "1.10"))
    assert (get().state, get().fault) == ("active", None)


def test_a_pending_server_stays_pending_while_nova_says_error(read: Emulator) -> None:
    Server.objects.update(state="pending", node=None)
    hear("instance.update", instance("InstanceUpdatePayload", "2.1", state="error", host=None, launched_at=None))
    assert get().state == "pending"


def test_a_notification_that_the_site_itself_sent_is_no_news(read: Emulator) -> None:
    assert not hear("instance.update", instance("InstanceUpdatePayload", "2.1", state="pending"))


@pytest.mark.parametrize("event", ["instance.delete.end", "instance.soft_delete.end"])
def test_a_deleted_server_is_marked_deleted(read: Emulator, event: str) -> None:
    hear(event, instance(state="deleted"))
    assert get().deleted_at


def test_a_deletion_of_a_server_that_nobody_knows_changes_nothing(read: Emulator) -> None:
    assert not hear("instance.delete.end", instance(uuid=NEW))


def test_an_update_with_the_state_deleted_deletes(read: Emulator) -> None:
    hear("instance.update", instance("InstanceUpdatePayload", "2.1", state="deleted"))
    assert get().deleted_at


def test_a_restored_server_is_there_again(read: Emulator) -> None:
    hear("instance.soft_delete.end", instance(state="soft-delete"), ago(2))
    hear("instance.restore.end", instance())
    assert not get().deleted_at


def test_an_update_does_not_bring_a_deleted_server_back(read: Emulator) -> None:
    hear("instance.delete.end", instance(), ago(2))
    assert not hear("instance.update", instance("InstanceUpdatePayload", "2.1"))
    assert get().deleted_at


def test_an_older_notification_does_not_overwrite_a_newer_one(read: Emulator) -> None:
    hear("instance.power_off.end", instance(state="stopped"), ago(1))
    assert not hear("instance.power_on.end", instance(state="active"), ago(2))
    assert get().state == "stopped"


def test_the_same_notification_twice_changes_nothing_more(read: Emulator) -> None:
    time = ago(1)
    hear("instance.power_off.end", instance(state="stopped"), time)
    columns = Server.objects.values().get(uuid=SERVER)
    hear("instance.power_off.end", instance(state="stopped"), time)
    assert Server.objects.values().get(uuid=SERVER) == columns


def test_a_later_notification_of_an_earlier_copy_is_no_news(read: Emulator) -> None:
    """Of two processes of Nova, one still has the server as it was before the other changed it."""
    earlier, later = "2026-11-22T10:00:00Z", "2026-11-22T10:00:05Z"
    hear("instance.live_migration_post_dest.end", instance(host="compute2", updated_at=later), ago(2))
    assert not hear("instance.update", instance("InstanceUpdatePayload", "2.1", updated_at=earlier), ago(1))
    assert str(get().node) == "compute2"


def test_a_soft_deletion_that_comes_after_the_restoration_is_ignored(read: Emulator) -> None:
    hear("instance.restore.end", instance(), ago(1))
    assert not hear("instance.soft_delete.end", instance(state="soft-delete"), ago(2))
    assert not get().deleted_at


def test_a_deletion_counts_although_another_host_has_a_clock_that_is_ahead(read: Emulator) -> None:
    hear("instance.update", instance("InstanceUpdatePayload", "2.1", task_state="deleting"), ago(1))
    assert hear("instance.delete.end", instance(), ago(2))


def test_a_notification_from_before_the_last_reading_is_no_news(read: Emulator) -> None:
    Synchronization.objects.update(succeeded_at=ago(5))
    assert not hear("instance.power_off.end", instance(state="stopped"), ago(6))
    assert not hear("instance.create.end", instance("InstanceCreatePayload", "1.13", uuid=NEW), ago(6))
    assert not hear("instance.delete.end", instance(), ago(6))
    assert (get().state, Server.objects.present().count()) == ("active", 1)


def test_a_notification_from_before_the_change_that_a_reading_saw_is_no_news(read: Emulator) -> None:
    """The change was made while the reading was under way, so that the reading's own time does not tell."""
    Server.objects.update(cloud_updated_at=ago(10))
    assert not hear("instance.power_off.end", instance(state="stopped"), ago(11))
    assert hear("instance.power_off.end", instance(state="stopped"), ago(9))


def test_a_server_has_the_time_of_its_notification_as_that_of_its_change(read: Emulator) -> None:
    time = ago(3)
    hear("instance.power_off.end", instance(state="stopped"), time)
    assert (get().updated_at, get().reported_at) == (time, time)


def test_a_notification_takes_a_fixed_number_of_queries(
    read: Emulator, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(7):  # Two of them open and close a savepoint of the test.
        hear("instance.power_off.end", instance(state="stopped"), timezone.now() - timedelta(seconds=1))
