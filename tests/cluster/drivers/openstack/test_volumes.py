"""Actions on volumes of an OpenStack cloud, also when Cinder fails."""

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
    """A volume of a type that one pool takes, and beside it a pool and a type of another backend."""
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


def test_a_volume_is_found_as_cinder_has_it(emulator: Emulator, volume: str) -> None:
    emulator.cinder.volumes[volume]["attachments"] = [{"attachment_id": "a", "server_id": SERVER}]
    found = cloud().find_volume(volume)
    assert (found.uuid, found.name, found.status, found.pool) == (volume, "data", "available", HERE)
    assert (found.volume_type, found.servers) == ("fast", (SERVER,))


def test_a_volume_that_is_gone_is_not_found_and_its_row_is_marked(emulator: Emulator, volume: str) -> None:
    del emulator.cinder.volumes[volume]
    with pytest.raises(VolumeNotFound):
        cloud().find_volume(volume)
    assert row().deleted_at


def test_a_pool_is_found_with_the_types_that_it_takes(emulator: Emulator, volume: str) -> None:
    assert cloud().find_pool(THERE).volume_types == ("safe",)


def test_a_pool_that_is_not_there_is_not_found(emulator: Emulator, volume: str) -> None:
    with pytest.raises(PoolNotFound):
        cloud().find_pool("c@lvm#three")


def test_a_type_that_is_not_there_is_not_found(emulator: Emulator, volume: str) -> None:
    cloud().check_volume_type("safe")
    with pytest.raises(VolumeTypeNotFound):
        cloud().check_volume_type("golden")


def test_without_cinder_there_are_no_volumes(emulator: Emulator) -> None:
    emulator.offered.remove("block-storage")
    with pytest.raises(CloudError, match="The cloud has no Cinder: its catalog has no endpoint of type block-storage"):
        cloud().find_volume(VOLUME)


def test_a_volume_goes_where_it_shall(emulator: Emulator, volume: str) -> None:
    cloud().migrate_volume(volume, THERE)
    assert (place(emulator), row().pool.name, row().operation_owner) == (THERE, THERE, "")


def test_a_volume_gets_the_type_that_it_shall_have_and_moves_for_it(emulator: Emulator, volume: str) -> None:
    cloud().retype_volume(volume, "safe")
    assert (row().volume_type.name, row().pool.name, row().status) == ("safe", THERE, "available")


def test_a_migration_that_fails_says_so(emulator: Emulator, volume: str) -> None:
    emulator.cinder.failing = True
    with pytest.raises(OperationFailed) as caught:
        cloud().migrate_volume(volume, THERE)
    assert str(caught.value) == f"Volume {volume} is still in {HERE} after its migration: Cinder calls it an error"


def test_a_retype_that_fails_says_so(emulator: Emulator, volume: str) -> None:
    emulator.cinder.failing = True
    with pytest.raises(OperationFailed, match="has type fast after its retype"):
        cloud().retype_volume(volume, "safe")


def test_a_volume_that_is_busy_is_left_alone(emulator: Emulator, volume: str) -> None:
    emulator.cinder.volumes[volume]["os-vol-mig-status-attr:migstat"] = "migrating"
    with pytest.raises(OperationRefused, match="is busy: migrating"):
        cloud().migrate_volume(volume, THERE)


def test_a_conflict_has_the_message_of_cinder(emulator: Emulator, volume: str) -> None:
    emulator.cinder.volumes[volume]["status"] = "creating"
    with pytest.raises(
        OperationRefused, match=r"The cloud refused it: Volume .* status must be available or in-use\."
    ):
        cloud().migrate_volume(volume, THERE)


def test_an_operation_whose_answer_is_lost_is_waited_for(emulator: Emulator, volume: str) -> None:
    emulator.fail("POST .*/action", 504, after=True)
    cloud().migrate_volume(volume, THERE)
    assert (place(emulator), emulator.count("POST .*/action")) == (THERE, 1)


def test_an_operation_that_was_not_heard_fails(emulator: Emulator, volume: str) -> None:
    emulator.fail("POST .*/action", 503, message="Overloaded.")
    with pytest.raises(CloudError, match="Overloaded"):
        cloud().migrate_volume(volume, THERE)


def test_an_operation_that_hangs_is_given_up_in_time(emulator: Emulator, volume: str, settings: Settings) -> None:
    settings.OPENSTACK_OPERATION_TIMEOUT = 0.05
    emulator.readings = float("inf")
    with pytest.raises(OperationFailed, match=r"was not over after 0\.05 seconds"):
        cloud().migrate_volume(volume, THERE)


class Lost(BaseException):
    """The process is gone: nothing of ours is done any more."""


def leave(emulator: Emulator, owner: str) -> None:
    """Begin a migration, and die in the middle of it."""

    def die() -> None:
        if emulator.cinder.operations:
            raise Lost

    with acting_for(owner), pytest.raises(Lost):
        cloud().migrate_volume(VOLUME, THERE, die)


def test_a_migration_left_behind_is_waited_for(emulator: Emulator, volume: str) -> None:
    leave(emulator, "one")
    with acting_for("one"):
        assert cloud().reconcile_volume(volume).pool == THERE
    assert row().operation_owner == ""


def test_the_migration_of_another_is_not_waited_for(emulator: Emulator, volume: str) -> None:
    leave(emulator, "one")
    with acting_for("another"):
        assert cloud().reconcile_volume(volume).pool == HERE
