"""Cinder's notifications update volumes and their attachments."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from cluster.models import Synchronization, Volume, VolumeAttachment
from tests.cluster.drivers.openstack.notifications.conftest import read_cloud
from tests.cluster.drivers.openstack.notifications.samples import SERVER, VOLUME, ago, handle, volume
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.server import Emulator

pytestmark = pytest.mark.django_db
TYPE = "11111111-1111-1111-1111-111111111111"


@pytest.fixture
def storage(synced: Emulator) -> Emulator:
    """A cloud with a pool and a volume type, and no volume."""
    synced.cinder.add_type(TYPE, "fast", "lvm")
    synced.cinder.add_pool("block@lvm#gold", "lvm")
    read_cloud("a server, a pool and a volume type")
    return synced


def get() -> Volume:
    found: Volume = Volume.objects.select_related("pool", "volume_type").get(uuid=VOLUME)
    return found


def attached() -> list[str]:
    return [str(one.server.uuid) for one in VolumeAttachment.objects.present().select_related("server")]


def test_created_volume_has_the_same_values_as_after_a_synchronization(storage: Emulator) -> None:
    assert handle("volume.create.end", volume(volume_type=TYPE))
    found = get()
    assert (found.name, found.size, found.status, found.project_id) == ("data", 10, "available", "a project")
    assert (str(found.pool), str(found.volume_type)) == ("block@lvm#gold", "fast")
    assert found.metadata == {"kind": "database"}


def test_volume_is_attached_to_known_servers_and_detached(storage: Emulator) -> None:
    handle("volume.attach.end", volume(SERVER, make_uuid("unknown")), ago(2))
    assert (get().status, attached()) == ("in-use", [SERVER])
    handle("volume.detach.end", volume(), ago(1))
    assert (get().status, attached()) == ("available", [])


def test_reserved_attachment_is_ignored(storage: Emulator) -> None:
    reserved = {"id": make_uuid("one"), "instance_uuid": SERVER, "attach_status": "reserved"}
    handle("volume.update.end", volume(volume_attachment=[reserved]))
    assert attached() == []


def test_payload_without_attachments_keeps_the_attachments(storage: Emulator) -> None:
    handle("volume.attach.end", volume(SERVER), ago(2))
    payload = volume(SERVER, size=20)
    del payload["volume_attachment"]
    handle("volume.resize.end", payload, ago(1))
    assert (get().size, attached()) == (20, [SERVER])


@pytest.mark.parametrize(
    ("event", "columns", "expected"),
    [
        ("volume.resize.end", {"size": 20}, {"size": 20}),
        ("volume.update.end", {"display_name": "renamed"}, {"name": "renamed"}),
        ("volume.revert.end", {"size": 5}, {"size": 5}),
        ("volume.manage_existing.end", {"display_name": "taken over"}, {"name": "taken over"}),
        ("volume.transfer.accept.end", {"tenant_id": "another"}, {"project_id": "another"}),
        ("volume.update.end", {"metadata": {"kind": "log"}}, {"metadata": {"kind": "log"}}),
        ("volume.update.end", {"glance_metadata": [{"key": "min_ram"}]}, {"bootable": True}),
    ],
)
def test_event_updates_its_field(
    storage: Emulator, event: str, columns: dict[str, Any], expected: dict[str, Any]
) -> None:
    handle("volume.create.end", volume(), ago(1))
    handle(event, volume(**columns))
    assert {name: getattr(get(), name) for name in expected} == expected


def test_retyped_volume_has_its_new_type(storage: Emulator) -> None:
    handle("volume.create.end", volume(), ago(1))
    handle("volume.retype", volume(volume_type=TYPE))
    assert str(get().volume_type) == "fast"


@pytest.mark.parametrize("event", ["volume.delete.end", "volume.unmanage.end"])
def test_deleted_volume_and_its_attachments_are_marked_deleted(storage: Emulator, event: str) -> None:
    handle("volume.attach.end", volume(SERVER), ago(1))
    handle(event, volume())
    assert (bool(get().deleted_at), attached()) == (True, [])


def test_deleted_volume_stays_deleted_after_an_update(storage: Emulator) -> None:
    handle("volume.create.end", volume(), ago(3))
    handle("volume.delete.end", volume(), ago(2))
    assert not handle("volume.update.end", volume(), ago(1))


def test_older_notification_is_ignored(storage: Emulator) -> None:
    handle("volume.resize.end", volume(size=20), ago(1))
    assert not handle("volume.create.end", volume(size=10), ago(2))
    assert get().size == 20


def test_notification_before_the_synchronized_update_time_is_ignored(storage: Emulator) -> None:
    storage.cinder.add_volume(VOLUME, "data", "block@lvm#gold", updated_at=ago(60).replace(tzinfo=None).isoformat())
    read_cloud()
    assert not handle("volume.update.end", volume(), ago(90))
    assert handle("volume.update.end", volume(), ago(30))


def test_notification_before_the_last_synchronization_is_ignored(storage: Emulator) -> None:
    Synchronization.objects.update(succeeded_at=ago(5))
    assert not handle("volume.create.end", volume(), ago(6))
    assert not Volume.objects.exists()


def test_notification_uses_9_queries(storage: Emulator, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    handle("volume.attach.end", volume(SERVER), ago(2))
    with django_assert_num_queries(9):  # Two of them open and close a savepoint of the test.
        handle("volume.update.end", volume(SERVER), ago(1))
