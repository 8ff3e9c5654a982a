"""Volumes of the embedded cloud: migrations and retypes, with capacity of pools reserved under locks."""

from abc import ABC
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from cluster.drivers import messages
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
    choose_pool_with_most_free,
    describe_volume,
    require_free_volume,
    require_migratable_volume,
    require_pool,
    require_unpinned,
)
from cluster.models import Pool, StorageNode, Volume, VolumeType
from cluster.models.storage import update_usage

MIGRATING, RETYPING = "migrating", "retyping"
# The pools of storage nodes that accept volumes.
OPEN_POOLS = Q(
    storage_node__deleted_at=None,
    storage_node__status=StorageNode.Status.ENABLED,
    storage_node__state=StorageNode.State.UP,
)


class EmbeddedStorage(Cloud, ABC):
    """The volumes of `EmbeddedCloud`; ``migration_status`` and ``destination`` describe an operation in progress."""

    def find_volume(self, volume: str) -> CloudVolume:
        return describe_stored_volume(
            get_or_raise(Volume.objects.present().filter(uuid=volume), VolumeNotFound(volume))
        )

    def find_pool(self, pool: str) -> CloudPool:
        row = find_pool(pool)
        types = row.storage_node.volume_types.filter(deleted_at=None).values_list("name", flat=True)
        return CloudPool(row.name, tuple(types))

    def check_volume_type(self, volume_type: str) -> None:
        find_volume_type(volume_type)

    def migrate_volume(self, volume: str, pool: str, checkpoint: Checkpoint = proceed) -> None:
        destination = self.reserve_capacity(volume, pool)
        self.wait_for_volume(volume, checkpoint)
        self.finish_volume(volume, MIGRATING, destination)

    def retype_volume(self, volume: str, volume_type: str, checkpoint: Checkpoint = proceed) -> None:
        kind, destination = self.reserve_type(volume, volume_type)
        self.wait_for_volume(volume, checkpoint)
        self.finish_volume(volume, RETYPING, destination, volume_type=kind)

    @transaction.atomic
    def reconcile_volume(self, volume: str, checkpoint: Checkpoint = proceed) -> CloudVolume:
        """Release the reservation. An embedded operation ends with its process, and has no effect until its end."""
        row = lock_volume(volume)
        if not may_undo(row):
            return describe_stored_volume(row)
        destination_key = row.destination_id
        row.migration_status, row.operation_owner, row.destination = None, "", None
        row.save_changes(["migration_status", "operation_owner", "destination"])
        update_usage(lock_pools(Q(pk=destination_key)))
        return describe_stored_volume(row)

    @transaction.atomic
    def reserve_capacity(self, volume: str, pool: str) -> Pool:
        """Reserve capacity for the volume in its destination pool."""
        row = lock_free_volume(volume)
        destination = find_pool(pool)
        is_served = not row.volume_type or accepts_type(destination, row.volume_type)
        require_migratable_volume(row, destination, is_served=is_served)
        reserved = reserve(row, lock_pools(OPEN_POOLS & Q(pk=destination.pk)), MIGRATING)
        require_attempt()
        return reserved

    @transaction.atomic
    def reserve_type(self, volume: str, volume_type: str) -> tuple[VolumeType, Pool | None]:
        """Begin a retype; return the type, and the destination if the volume's own pool does not accept the type."""
        row, kind = lock_free_volume(volume), find_volume_type(volume_type)
        if accepts_type(require_pool(row), kind):
            row.migration_status, row.operation_owner = RETYPING, OWNER.get()
            row.save_changes(["migration_status", "operation_owner"])
            destination = None
        else:
            require_unpinned(row)
            destination = reserve(row, lock_pools(OPEN_POOLS & Q(storage_node__volume_types=kind)), RETYPING)
        require_attempt()
        return kind, destination

    def wait_for_volume(self, volume: str, checkpoint: Checkpoint) -> None:
        """Wait for the simulated duration of an operation, and release its reservation if the operation fails."""
        try:
            pass_time(checkpoint)
        except OperationFailed:
            self.reconcile_volume(volume)
            raise

    @transaction.atomic
    def finish_volume(self, volume: str, status: str, destination: Pool | None, **changes: Any) -> None:
        """Write the result of an operation, if it is still in progress.

        Raises:
            VolumeNotFound: the volume was deleted meanwhile.
            OperationFailed: another process ended or replaced the operation.
        """
        row = lock_volume(volume)
        if not may_end(row) or row.migration_status != status or row.destination != destination:
            raise OperationFailed(messages.VOLUME_TAKEN_OUT.fill(volume=volume, operation=status))
        pool_keys = {row.pool_id, row.destination_id}
        for field, value in {**changes, "pool": destination or row.pool}.items():
            setattr(row, field, value)
        row.migration_status, row.operation_owner, row.destination = None, "", None
        row.save_changes([*changes, "pool", "migration_status", "operation_owner", "destination"])
        update_usage(lock_pools(Q(pk__in=pool_keys - {None})))


def get_or_raise(rows: QuerySet[Any], missing: Exception) -> Any:
    row = rows.first()
    if row is None:
        raise missing
    return row


def find_pool(name: str) -> Pool:
    pools = Pool.objects.present().filter(storage_node__deleted_at=None, name=name).select_related("storage_node")
    pool: Pool = get_or_raise(pools, PoolNotFound(name))
    return pool


def find_volume_type(name: str) -> VolumeType:
    volume_type: VolumeType = get_or_raise(VolumeType.objects.present().filter(name=name), VolumeTypeNotFound(name))
    return volume_type


def lock_volume(volume: str) -> Volume:
    rows = Volume.objects.present().filter(uuid=volume).select_for_update(no_key=True)
    row: Volume = get_or_raise(rows, VolumeNotFound(volume))
    return row


def lock_free_volume(volume: str) -> Volume:
    """Lock a volume. Raises: `CloudBusy`, `OperationRefused`."""
    row = lock_volume(volume)
    require_free_volume(row)
    return row


def accepts_type(pool: Pool, kind: VolumeType) -> bool:
    return pool.storage_node.volume_types.filter(pk=kind.pk).exists()


def lock_pools(condition: Q) -> list[Pool]:
    """Lock the pools that meet a condition, always in the same order."""
    keys = Pool.objects.present().filter(condition).order_by("pk").values_list("pk", flat=True)
    return list(Pool.objects.filter(pk__in=list(keys)).select_for_update(no_key=True).order_by("pk"))


def reserve(row: Volume, pools: list[Pool], status: str) -> Pool:
    """Reserve capacity for a volume in the locked pool with the most virtual free capacity, and return the pool.

    Raises:
        OperationRefused: there is no pool, or none has enough capacity.
    """
    update_usage(pools)
    best = choose_pool_with_most_free(row, pools)
    row.migration_status, row.operation_owner, row.destination = status, OWNER.get(), best
    row.save_changes(["migration_status", "operation_owner", "destination"])
    update_usage([best])
    return best


def describe_stored_volume(row: Volume) -> CloudVolume:
    servers = row.attachments.filter(deleted_at=None, server__deleted_at=None).values_list("server__uuid", flat=True)
    return describe_volume(row, servers)
