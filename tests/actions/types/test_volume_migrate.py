"""volume_migrate on the embedded cloud: skips, failures, results and the capacity of the pools."""

from typing import Any
from uuid import uuid4

import pytest

from actions.types.base import DONE, ActionContext, ActionFailed, ActionSkipException, ActionType, Recovery, make
from cluster.drivers.base import CloudError, OperationFailed, OperationRefused, cloud
from cluster.models import Pool, StorageNode, Volume, VolumeType
from tests.builders import make_node, make_pool, make_server, make_volume, make_volume_type

pytestmark = pytest.mark.django_db

HERE, THERE = "a@lvm#one", "b@lvm#one"


@pytest.fixture
def fast() -> VolumeType:
    return make_volume_type("fast")


@pytest.fixture
def here(fast: VolumeType) -> Pool:
    return make_pool(HERE, volume_types=[fast])


@pytest.fixture
def there() -> Pool:
    return make_pool(THERE, volume_types=[make_volume_type("big")])


@pytest.fixture
def volume(here: Pool, there: Pool) -> Volume:
    return make_volume("data", here, size=30)


def migrate(volume: Volume, kind: str = "migrate", **parameters: Any) -> ActionType:
    parameters = {"destination_node": THERE, **parameters}
    return make(
        "volume_migrate", {"resource_id": str(volume.uuid), "migration_type": kind, **parameters}, ActionContext()
    )


def retype(volume: Volume, volume_type: str = "big") -> ActionType:
    parameters = {"resource_id": str(volume.uuid), "migration_type": "retype", "destination_type": volume_type}
    return make("volume_migrate", parameters, ActionContext())


def reload(volume: Volume) -> Volume:
    found: Volume = Volume.objects.select_related("pool", "volume_type").get(pk=volume.pk)
    return found


def free() -> list[int]:
    return list(Pool.objects.order_by("name").values_list("free_capacity_gb", flat=True))


def message(action: ActionType, error: type[Exception], method: str = "pre_condition") -> str:
    with pytest.raises(error) as caught:
        getattr(action, method)()
    return str(caught.value)


def test_deleted_volume_is_skipped(volume: Volume) -> None:
    volume.uuid = uuid4()
    assert message(migrate(volume), ActionSkipException) == f"Volume {volume.uuid} not found"


def test_unknown_pool_fails(volume: Volume) -> None:
    assert message(migrate(volume, destination_node="c@lvm#one"), CloudError) == "Pool c@lvm#one not found"


def test_unknown_volume_type_fails(volume: Volume) -> None:
    assert message(retype(volume, "golden"), CloudError) == "Volume type golden not found"


@pytest.mark.parametrize("kind", ["migrate", "swap"])
def test_volume_in_the_destination_pool_is_skipped(volume: Volume, kind: str) -> None:
    action = migrate(volume, kind, destination_node=HERE)
    assert message(action, ActionSkipException) == f"Volume is already on node {HERE}"


def test_volume_of_the_destination_type_is_skipped(volume: Volume, fast: VolumeType) -> None:
    volume.volume_type = fast
    volume.save_changes(["volume_type"])
    assert message(retype(volume, "fast"), ActionSkipException) == "Volume type is already fast"


def test_migration_without_pool_and_retype_without_type_fail(volume: Volume) -> None:
    action = migrate(volume, "retype")
    assert message(action, ActionFailed) == "destination_type: is required to retype a volume"
    parameters = {"resource_id": str(volume.uuid), "migration_type": "swap"}
    action = make("volume_migrate", parameters, ActionContext())
    assert message(action, ActionFailed) == "destination_node: is required to swap a volume"


@pytest.mark.parametrize("kind", ["migrate", "swap"])
def test_volume_moves_and_the_free_capacity_of_both_pools_changes(volume: Volume, kind: str) -> None:
    action = migrate(volume, kind)
    action.pre_condition()
    assert action.execute() == DONE
    moved = reload(volume)
    assert (moved.pool.name, moved.destination, moved.migration_status) == (THERE, None, None)
    assert free() == [100, 70]


def test_moving_volume_uses_capacity_in_both_pools(volume: Volume) -> None:
    seen: list[list[int]] = []
    cloud().migrate_volume(str(volume.uuid), THERE, lambda: seen.append(free()))
    assert seen[0] == [70, 70]


def test_pool_without_free_capacity_refuses_the_volume(volume: Volume, there: Pool) -> None:
    make_volume("other", there, size=71)
    reason = f"Pool {THERE} has 29 GB free of 30 needed"
    assert message(migrate(volume), OperationRefused, "execute") == reason
    assert (reload(volume).migration_status, free()) == (None, [70, 29])


def test_over_subscription_ratio_increases_the_capacity_of_a_pool(volume: Volume, there: Pool) -> None:
    there.max_over_subscription_ratio = 2.0
    there.save_changes(["max_over_subscription_ratio"])
    make_volume("other", there, size=95)
    assert migrate(volume).execute() == DONE
    assert free() == [100, 0]


@pytest.mark.parametrize("state", ["active", "paused"])
def test_attached_volume_moves_if_its_server_is_active_or_paused(volume: Volume, here: Pool, state: str) -> None:
    attached = make_volume("attached", here, attached_to=[make_server("web-1", make_node(), state=state)])
    assert migrate(attached).execute() == DONE


def test_attached_volume_does_not_move_if_its_server_is_stopped(here: Pool, there: Pool) -> None:
    server = make_server("web-1", make_node(), state="stopped")
    attached = make_volume("attached", here, attached_to=[server])
    assert message(migrate(attached), ActionFailed, "execute") == (
        f"Volume {attached.uuid} is attached to instance {server.uuid}, which must be ACTIVE or PAUSED"
        " (current status: SHUTOFF)"
    )


def test_attached_volume_must_be_in_use(here: Pool, there: Pool) -> None:
    attached = make_volume("attached", here, attached_to=[make_server("web-1", make_node())], status="detaching")
    reason = f"Volume {attached.uuid} is attached, but not in-use (current status: detaching)"
    assert message(migrate(attached), ActionFailed, "execute") == reason


def test_pool_must_support_the_type_of_the_volume(volume: Volume, fast: VolumeType) -> None:
    volume.volume_type = fast
    volume.save_changes(["volume_type"])
    assert message(migrate(volume), ActionFailed, "execute") == f"Pool {THERE} takes no volumes of type fast"
    with pytest.raises(OperationRefused, match="takes no volumes of type fast"):
        cloud().migrate_volume(str(volume.uuid), THERE)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"has_snapshots": True}, "has snapshots, and can not leave its pool"),
        ({"status": "error"}, "can not be moved or retyped while it is error"),
        ({"migration_status": "migrating"}, "is busy: migrating"),
        ({"pool": None}, "is in no pool"),
    ],
)
def test_cloud_refuses_a_volume_that_cannot_move(volume: Volume, columns: dict[str, Any], reason: str) -> None:
    Volume.objects.filter(pk=volume.pk).update(**columns)
    assert message(migrate(volume), OperationRefused, "execute") == f"Volume {volume.uuid} {reason}"


@pytest.mark.parametrize("columns", [{"state": "down"}, {"status": "disabled"}])
def test_pool_of_a_disabled_or_down_storage_node_refuses_volumes(volume: Volume, columns: dict[str, str]) -> None:
    StorageNode.objects.filter(host="b@lvm").update(**columns)
    assert "is enabled and up" in message(migrate(volume), OperationRefused, "execute")


def test_retyped_volume_moves_to_a_pool_that_supports_its_new_type(volume: Volume) -> None:
    action = retype(volume)
    action.pre_condition()
    assert action.execute() == DONE
    retyped = reload(volume)
    assert (retyped.volume_type.name, retyped.pool.name, retyped.migration_status) == ("big", THERE, None)
    assert free() == [100, 70]


def test_retyped_volume_stays_if_its_pool_supports_the_new_type(volume: Volume) -> None:
    Volume.objects.filter(pk=volume.pk).update(has_snapshots=True)
    assert retype(volume, "fast").execute() == DONE
    retyped = reload(volume)
    assert (retyped.volume_type.name, retyped.pool.name, free()) == ("fast", HERE, [70, 100])


def test_retyped_volume_moves_to_the_pool_with_the_most_free_capacity(volume: Volume) -> None:
    make_pool("b@lvm#two", total_capacity_gb=200)
    retype(volume).execute()
    assert reload(volume).pool.name == "b@lvm#two"


def test_failed_migration_releases_the_capacity(volume: Volume, settings: Any) -> None:
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1
    message(migrate(volume), OperationFailed, "execute")
    left = reload(volume)
    assert (left.pool.name, left.destination, left.migration_status, free()) == (HERE, None, None, [70, 100])


def test_migration_fails_if_the_volume_is_reconciled_meanwhile(volume: Volume) -> None:
    with pytest.raises(OperationFailed, match="was taken out of its operation migrating"):
        cloud().migrate_volume(str(volume.uuid), THERE, lambda: cloud().reconcile_volume(str(volume.uuid)) and None)
    assert (reload(volume).pool.name, free()) == (HERE, [70, 100])


def test_interrupted_migration_is_reset_and_repeated(volume: Volume, there: Pool) -> None:
    volume.destination, volume.migration_status = there, "migrating"
    volume.save_changes(["destination", "migration_status"])
    assert migrate(volume).recover() is Recovery.AGAIN
    assert (reload(volume).destination, reload(volume).migration_status, free()) == (None, None, [70, 100])


def test_completed_migration_is_not_repeated(volume: Volume) -> None:
    retype(volume).execute()
    assert (migrate(volume).recover(), retype(volume).recover()) == (Recovery.DONE, Recovery.DONE)


def test_volume_migration_can_be_neither_aborted_nor_reverted(volume: Volume) -> None:
    assert migrate(volume).abort() is False
    assert message(migrate(volume), ActionFailed, "revert") == "Actions of type volume_migrate can not be reverted"
