"""Operations on volumes of an OpenStack cloud, also with failures of Cinder."""

import pytest
from pytest_django import Settings

from cluster.drivers.base import (
    CloudError,
    OperationFailed,
    OperationRefused,
    PoolNotFound,
    VolumeNotFound,
    VolumeTypeNotFound,
    cloud,
)
from cluster.drivers.ownership import acting_for
from cluster.models import Volume
from tests.cluster.drivers.openstack.cached_contents import write_cached_contents
from tests.cluster.emulator.server import Emulator

pytestmark = pytest.mark.django_db
VOLUME = "21111111-1111-1111-1111-111111111111"
HERE, THERE = "a@lvm#one", "b@ceph#two"
SERVER = "41111111-1111-1111-1111-111111111111"


@pytest.fixture
def volume(emulator: Emulator) -> str:
    """The UUID of a volume in a pool of its type. The cloud has a pool and a type of another backend too."""
    emulator.cinder.add_type("11111111-1111-1111-1111-111111111111", "fast", "lvm")
    emulator.cinder.add_type("12222222-1111-1111-1111-111111111111", "safe", "ceph")
    emulator.cinder.add_pool(HERE, "lvm")
    emulator.cinder.add_pool(THERE, "ceph")
    emulator.cinder.add_volume(VOLUME, "data", HERE, volume_type="fast")
    write_cached_contents("a volume and two pools")
    return VOLUME


def place(emulator: Emulator) -> str:
    return str(emulator.cinder.volumes[VOLUME]["os-vol-host-attr:host"])


def row() -> Volume:
    found: Volume = Volume.objects.select_related("pool", "volume_type").get(uuid=VOLUME)
    return found


def test_volume_is_found_with_its_state(emulator: Emulator, volume: str) -> None:
    emulator.cinder.volumes[volume]["attachments"] = [{"attachment_id": "a", "server_id": SERVER}]
    found = cloud().find_volume(volume)
    assert (found.uuid, found.name, found.status, found.pool) == (volume, "data", "available", HERE)
    assert (found.volume_type, found.servers) == ("fast", (SERVER,))


def test_deleted_volume_is_not_found_and_marked_deleted(emulator: Emulator, volume: str) -> None:
    del emulator.cinder.volumes[volume]
    with pytest.raises(VolumeNotFound):
        cloud().find_volume(volume)
    assert row().deleted_at


def test_pool_is_found_with_its_volume_types(emulator: Emulator, volume: str) -> None:
    assert cloud().find_pool(THERE).volume_types == ("safe",)


def test_unknown_pool_is_not_found(emulator: Emulator, volume: str) -> None:
    with pytest.raises(PoolNotFound):
        cloud().find_pool("c@lvm#three")


def test_unknown_volume_type_is_not_found(emulator: Emulator, volume: str) -> None:
    cloud().check_volume_type("safe")
    with pytest.raises(VolumeTypeNotFound):
        cloud().check_volume_type("golden")


def test_cloud_without_cinder_is_reported(emulator: Emulator) -> None:
    emulator.offered.remove("block-storage")
    with pytest.raises(CloudError, match="The cloud has no Cinder: its catalog has no endpoint of type block-storage"):
        cloud().find_volume(VOLUME)


def test_volume_is_migrated_to_the_destination(emulator: Emulator, volume: str) -> None:
    cloud().migrate_volume(volume, THERE)
    assert (place(emulator), row().pool.name, row().operation_owner) == (THERE, THERE, "")


def test_volume_is_retyped_and_migrated_to_a_pool_of_the_type(emulator: Emulator, volume: str) -> None:
    cloud().retype_volume(volume, "safe")
    assert (row().volume_type.name, row().pool.name, row().status) == ("safe", THERE, "available")


def test_failed_migration_is_reported(emulator: Emulator, volume: str) -> None:
    emulator.cinder.failing = True
    with pytest.raises(OperationFailed) as caught:
        cloud().migrate_volume(volume, THERE)
    assert str(caught.value) == f"Volume {volume} is still in {HERE} after its migration: Cinder calls it an error"


def test_failed_retype_is_reported(emulator: Emulator, volume: str) -> None:
    emulator.cinder.failing = True
    with pytest.raises(OperationFailed, match="has type fast after its retype"):
        cloud().retype_volume(volume, "safe")


def test_busy_volume_is_refused(emulator: Emulator, volume: str) -> None:
    emulator.cinder.volumes[volume]["os-vol-mig-status-attr:migstat"] = "migrating"
    with pytest.raises(OperationRefused, match="is busy: migrating"):
        cloud().migrate_volume(volume, THERE)


def test_conflict_has_the_message_of_cinder(emulator: Emulator, volume: str) -> None:
    emulator.cinder.volumes[volume]["status"] = "creating"
    with pytest.raises(
        OperationRefused, match=r"The cloud refused it: Volume .* status must be available or in-use\."
    ):
        cloud().migrate_volume(volume, THERE)


def test_operation_is_awaited_after_a_gateway_timeout(emulator: Emulator, volume: str) -> None:
    emulator.fail("POST .*/action", 504, after=True)
    cloud().migrate_volume(volume, THERE)
    assert (place(emulator), emulator.count("POST .*/action")) == (THERE, 1)


def test_operation_refused_as_unavailable_fails(emulator: Emulator, volume: str) -> None:
    emulator.fail("POST .*/action", 503, message="Overloaded.")
    with pytest.raises(CloudError, match="Overloaded"):
        cloud().migrate_volume(volume, THERE)


def test_hanging_operation_fails_after_its_timeout(emulator: Emulator, volume: str, settings: Settings) -> None:
    settings.OPENSTACK_OPERATION_TIMEOUT = 0.05
    emulator.readings = float("inf")
    with pytest.raises(OperationFailed, match=r"was not over after 0\.05 seconds"):
        cloud().migrate_volume(volume, THERE)


class Killed(BaseException):
    """The process is killed: no handler runs."""


def interrupt_migration(emulator: Emulator, owner: str) -> None:
    """Begin a migration as a process that is killed during it."""

    def die() -> None:
        if emulator.cinder.operations:
            raise Killed

    with acting_for(owner), pytest.raises(Killed):
        cloud().migrate_volume(VOLUME, THERE, die)


def test_interrupted_migration_is_awaited(emulator: Emulator, volume: str) -> None:
    interrupt_migration(emulator, "one")
    with acting_for("one"):
        assert cloud().reconcile_volume(volume).pool == THERE
    assert row().operation_owner == ""


def test_interrupted_migration_of_another_owner_is_not_awaited(emulator: Emulator, volume: str) -> None:
    interrupt_migration(emulator, "one")
    with acting_for("another"):
        assert cloud().reconcile_volume(volume).pool == HERE
