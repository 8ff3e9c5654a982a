"""The volumes and pools of the simulated cloud."""

from abc import ABC
from collections import defaultdict
from uuid import UUID

from django.db.models import Q

from cluster.drivers.base import (
    Checkpoint,
    Cloud,
    CloudPool,
    CloudVolume,
    PoolNotFound,
    VolumeNotFound,
    VolumeTypeNotFound,
    proceed,
)
from cluster.drivers.ownership import may_undo
from cluster.drivers.rules import (
    choose_pool_with_most_free,
    describe_volume,
    require_free_volume,
    require_migratable_volume,
    require_pool,
    require_unpinned,
)
from cluster.models import Pool, StorageNode, Volume, VolumeAttachment, VolumeType


class SimulatedStorage(Cloud, ABC):
    """The volumes of `SimulatedCloud`. Moves change ``virtual_free`` of the pools."""

    def __init__(self) -> None:
        self.volumes: dict[UUID, Volume] = {}
        self.pools: dict[str, Pool] = {}
        self.volume_types: dict[str, VolumeType] = {}
        self.served: set[tuple[int, int]] = set()
        """Pairs of keys of a storage node and a volume type that it accepts."""
        self.attached: dict[int, list[UUID]] = defaultdict(list)

    def load_storage(self) -> None:
        """Load the tables in five queries."""
        volumes = list(Volume.objects.present().defer("metadata").order_by("pk"))
        is_needed = Q(deleted_at=None) | Q(pk__in=Volume.objects.present().order_by().values("pool"))
        rows = Pool.objects.filter(is_needed).select_related("storage_node").order_by("pk")
        pools = {pool.pk: pool for pool in rows}
        types = {kind.pk: kind for kind in VolumeType.objects.order_by("pk")}
        for volume in volumes:
            volume.pool, volume.destination = pools.get(volume.pool_id), pools.get(volume.destination_id)
            volume.volume_type = types.get(volume.volume_type_id)
        self.volumes = {volume.uuid: volume for volume in volumes}
        self.pools = {pool.name: pool for pool in pools.values() if is_present(pool)}
        self.volume_types = {kind.name: kind for kind in types.values() if kind.deleted_at is None}
        served = StorageNode.volume_types.through.objects.values_list("storagenode_id", "volumetype_id")
        self.served = set(served)
        attachments = VolumeAttachment.objects.present().filter(server__deleted_at=None).order_by("pk")
        for volume, server in attachments.values_list("volume_id", "server__uuid"):
            self.attached[volume].append(server)

    def find_volume(self, volume: str) -> CloudVolume:
        row = self.volume(volume)
        return describe_volume(row, self.attached.get(row.pk, ()))

    def find_pool(self, pool: str) -> CloudPool:
        row = self.pool(pool)
        return CloudPool(row.name, tuple(name for name, kind in self.volume_types.items() if self.serves(row, kind)))

    def check_volume_type(self, volume_type: str) -> None:
        self.volume_type(volume_type)

    def migrate_volume(self, volume: str, pool: str, checkpoint: Checkpoint = proceed) -> None:
        row = self.free_volume(volume)
        destination = self.pool(pool)
        require_migratable_volume(
            row, destination, is_served=row.volume_type is None or self.serves(destination, row.volume_type)
        )
        self.move(row, choose_pool_with_most_free(row, [destination] if is_open(destination) else []))

    def retype_volume(self, volume: str, volume_type: str, checkpoint: Checkpoint = proceed) -> None:
        row = self.free_volume(volume)
        kind = self.volume_type(volume_type)
        if not self.serves(require_pool(row), kind):
            require_unpinned(row)
            pools = [pool for pool in self.pools.values() if is_open(pool) and self.serves(pool, kind)]
            self.move(row, choose_pool_with_most_free(row, pools))
        row.volume_type = kind

    def reconcile_volume(self, volume: str, checkpoint: Checkpoint = proceed) -> CloudVolume:
        """Undo the operation in progress, so that the caller can repeat it."""
        row = self.volume(volume)
        if may_undo(row):
            if row.destination:
                row.destination.virtual_free += row.size
            row.migration_status, row.operation_owner, row.destination = None, "", None
        return self.find_volume(volume)

    def move(self, row: Volume, pool: Pool) -> None:
        require_pool(row).virtual_free += row.size
        pool.virtual_free -= row.size
        row.pool = pool

    def volume(self, volume: str) -> Volume:
        try:
            return self.volumes[UUID(volume)]
        except (KeyError, ValueError) as missing:
            raise VolumeNotFound(volume) from missing

    def free_volume(self, volume: str) -> Volume:
        row = self.volume(volume)
        require_free_volume(row)
        return row

    def pool(self, pool: str) -> Pool:
        try:
            return self.pools[pool]
        except KeyError as missing:
            raise PoolNotFound(pool) from missing

    def volume_type(self, volume_type: str) -> VolumeType:
        try:
            return self.volume_types[volume_type]
        except KeyError as missing:
            raise VolumeTypeNotFound(volume_type) from missing

    def serves(self, pool: Pool, kind: VolumeType) -> bool:
        return (pool.storage_node_id, kind.pk) in self.served


def is_present(pool: Pool) -> bool:
    return pool.deleted_at is None and pool.storage_node.deleted_at is None


def is_open(pool: Pool) -> bool:
    """Return whether a pool accepts volumes."""
    node = pool.storage_node
    return node.status == StorageNode.Status.ENABLED and node.state == StorageNode.State.UP
