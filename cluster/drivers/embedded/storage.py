"""The storage of the embedded cloud: volumes in pools, moved and retyped with their capacity reserved under locks."""

from abc import ABC
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from cluster.drivers.base import (
    Checkpoint,
    Cloud,
    CloudPool,
    CloudVolume,
    OperationFailed,
    PoolNotFound,
    VolumeNotFound,
    VolumeTypeNotFound,
    proceed,
)
from cluster.drivers.embedded.delay import pass_time
from cluster.drivers.ownership import OWNER, may_end, may_undo, require_attempt
from cluster.drivers.rules import (
    describe_volume,
    require_free_volume,
    require_pool,
    require_unpinned,
    require_way,
    roomiest,
)
from cluster.models import Pool, StorageNode, Volume, VolumeType
from cluster.models.storage import account

MIGRATING, RETYPING = "migrating", "retyping"
# The pools that take volumes.
OPEN = Q(
    storage_node__deleted_at=None,
    storage_node__status=StorageNode.Status.ENABLED,
    storage_node__state=StorageNode.State.UP,
)


class EmbeddedStorage(Cloud, ABC):
    """The part of `EmbeddedCloud` for volumes: ``migration_status`` and ``destination`` describe an operation."""

    def find_volume(self, volume: str) -> CloudVolume:
        return describe_stored_volume(only(Volume.objects.present().filter(uuid=volume), VolumeNotFound(volume)))

    def find_pool(self, pool: str) -> CloudPool:
        row = find_pool(pool)
        types = row.storage_node.volume_types.filter(deleted_at=None).values_list("name", flat=True)
        return CloudPool(row.name, tuple(types))

    def check_volume_type(self, volume_type: str) -> None:
        find_volume_type(volume_type)

    def migrate_volume(self, volume: str, pool: str, checkpoint: Checkpoint = proceed) -> None:
        destination = self.reserve_capacity(volume, pool)
        self.work_on(volume, checkpoint)
        self.finish_volume(volume, MIGRATING, destination)

    def retype_volume(self, volume: str, volume_type: str, checkpoint: Checkpoint = proceed) -> None:
        kind, destination = self.reserve_type(volume, volume_type)
        self.work_on(volume, checkpoint)
        self.finish_volume(volume, RETYPING, destination, volume_type=kind)

    @transaction.atomic
    def reconcile_volume(self, volume: str, checkpoint: Checkpoint = proceed) -> CloudVolume:
        """An embedded operation ends with its process: where it had not come to its end, nothing has happened."""
        row = lock_volume(volume)
        if not may_undo(row):
            return describe_stored_volume(row)
        held = row.destination_id
        row.migration_status, row.operation_owner, row.destination = None, "", None
        row.save_changes(["migration_status", "operation_owner", "destination"])
        account(lock_pools(Q(pk=held)))
        return describe_stored_volume(row)

    @transaction.atomic
    def reserve_capacity(self, volume: str, pool: str) -> Pool:
        """Reserve capacity for the volume in its destination pool."""
        row = lock_free_volume(volume)
        wanted = find_pool(pool)
        require_way(row, wanted, is_served=not row.volume_type or serves(wanted, row.volume_type))
        destination = reserve(row, lock_pools(OPEN & Q(pk=wanted.pk)), MIGRATING)
        require_attempt()
        return destination

    @transaction.atomic
    def reserve_type(self, volume: str, volume_type: str) -> tuple[VolumeType, Pool | None]:
        """Return the type, and the pool to go to where the volume's own does not take that type."""
        row, kind = lock_free_volume(volume), find_volume_type(volume_type)
        if serves(require_pool(row), kind):
            row.migration_status, row.operation_owner = RETYPING, OWNER.get()
            row.save_changes(["migration_status", "operation_owner"])
            destination = None
        else:
            require_unpinned(row)
            destination = reserve(row, lock_pools(OPEN & Q(storage_node__volume_types=kind)), RETYPING)
        require_attempt()
        return kind, destination

    def work_on(self, volume: str, checkpoint: Checkpoint) -> None:
        """Wait as long as the operation takes, and release its reservation if the operation fails."""
        try:
            pass_time(checkpoint)
        except OperationFailed:
            self.reconcile_volume(volume)
            raise

    @transaction.atomic
    def finish_volume(self, volume: str, status: str, destination: Pool | None, **changes: Any) -> None:
        """Write the end of an operation, if it is still the one that began.

        Raises:
            VolumeNotFound: the volume was deleted meanwhile.
            OperationFailed: someone else ended or replaced the operation.
        """
        row = lock_volume(volume)
        if not may_end(row) or row.migration_status != status or row.destination != destination:
            raise OperationFailed(f"Volume {volume} was taken out of its operation {status}")
        touched = {row.pool_id, row.destination_id}
        for field, value in {**changes, "pool": destination or row.pool}.items():
            setattr(row, field, value)
        row.migration_status, row.operation_owner, row.destination = None, "", None
        row.save_changes([*changes, "pool", "migration_status", "operation_owner", "destination"])
        account(lock_pools(Q(pk__in=touched - {None})))


def only(rows: QuerySet[Any], missing: Exception) -> Any:
    row = rows.first()
    if row is None:
        raise missing
    return row


def find_pool(name: str) -> Pool:
    pools = Pool.objects.present().filter(storage_node__deleted_at=None, name=name).select_related("storage_node")
    found: Pool = only(pools, PoolNotFound(name))
    return found


def find_volume_type(name: str) -> VolumeType:
    found: VolumeType = only(VolumeType.objects.present().filter(name=name), VolumeTypeNotFound(name))
    return found


def lock_volume(volume: str) -> Volume:
    rows = Volume.objects.present().filter(uuid=volume).select_for_update(no_key=True)
    found: Volume = only(rows, VolumeNotFound(volume))
    return found


def lock_free_volume(volume: str) -> Volume:
    """Lock a volume that no operation is under way on."""
    row = lock_volume(volume)
    require_free_volume(row)
    return row


def serves(pool: Pool, kind: VolumeType) -> bool:
    return pool.storage_node.volume_types.filter(pk=kind.pk).exists()


def lock_pools(which: Q) -> list[Pool]:
    """Lock pools, always in the same order; the usage of their volumes is read by a statement of its own."""
    keys = Pool.objects.present().filter(which).order_by("pk").values_list("pk", flat=True)
    return list(Pool.objects.filter(pk__in=list(keys)).select_for_update(no_key=True).order_by("pk"))


def reserve(row: Volume, pools: list[Pool], status: str) -> Pool:
    """Reserve capacity for a volume in the locked pool that has most of it left to promise.

    Raises:
        OperationRefused: there is no pool, or none has enough capacity.
    """
    account(pools)
    best = roomiest(row, pools)
    row.migration_status, row.operation_owner, row.destination = status, OWNER.get(), best
    row.save_changes(["migration_status", "operation_owner", "destination"])
    account([best])
    return best


def describe_stored_volume(row: Volume) -> CloudVolume:
    servers = row.attachments.filter(deleted_at=None, server__deleted_at=None).values_list("server__uuid", flat=True)
    return describe_volume(row, servers)
