"""Checks of the embedded cloud on volumes and pools before an operation begins, like those of `rules` on servers."""

from collections.abc import Iterable, Sequence

from cluster.drivers.base import CloudBusy, CloudVolume, OperationRefused
from cluster.models import Pool, Volume


def describe_volume(row: Volume, servers: Iterable[object]) -> CloudVolume:
    return CloudVolume(
        str(row.uuid),
        row.name,
        row.status,
        row.pool.name if row.pool else None,
        row.volume_type.name if row.volume_type else None,
        tuple(str(server) for server in servers),
    )


def require_free_volume(row: Volume) -> None:
    """Raise `CloudBusy` where an operation is under way."""
    if row.migration_status:
        raise CloudBusy(f"Volume {row.uuid} is busy: {row.migration_status}")
    if row.status not in {Volume.Status.AVAILABLE, Volume.Status.IN_USE}:
        raise OperationRefused(f"Volume {row.uuid} can not be moved or retyped while it is {row.status}")


def require_pool(row: Volume) -> Pool:
    if row.pool is None:
        raise OperationRefused(f"Volume {row.uuid} is in no pool")
    return row.pool


def require_unpinned(row: Volume) -> None:
    """Raise `OperationRefused` where a volume can not leave the pool that it is in."""
    require_pool(row)
    if row.has_snapshots:
        raise OperationRefused(f"Volume {row.uuid} has snapshots, and can not leave its pool")


def require_way(row: Volume, wanted: Pool, is_served: bool) -> None:
    """Raise `OperationRefused` where a volume can not go to a pool, which may take its type or not."""
    if row.pool_id == wanted.pk:
        raise OperationRefused(f"Volume {row.uuid} is already in {wanted.name}")
    require_unpinned(row)
    if row.volume_type and not is_served:
        raise OperationRefused(f"Pool {wanted.name} takes no volumes of type {row.volume_type.name}")


def roomiest(row: Volume, pools: Sequence[Pool]) -> Pool:
    """Return the pool with the most capacity left to promise.

    Raises:
        OperationRefused: there is no pool, or none has enough capacity.
    """
    if not pools:
        raise OperationRefused(f"No storage node that could take volume {row.uuid} is enabled and up")
    best = max(pools, key=lambda pool: pool.virtual_free)
    if best.virtual_free < row.size:
        raise OperationRefused(f"Pool {best.name} has {max(best.virtual_free, 0)} GB free of {row.size} needed")
    return best
