"""A strategy that moves volumes away from pools that are nearly full."""

from collections.abc import Mapping
from typing import Any

from audits.strategies.base import STORAGE, Solution, Strategy
from cluster.snapshot import ClusterSnapshot
from cluster.snapshot.storage import PoolSnapshot, StorageSnapshot, VolumeSnapshot

# Pools with this name are ignored. This is the default of an option of Watcher.
EXCLUDED_POOL = "local_vstorage"
AVAILABLE, IN_USE = "available", "in-use"


class StorageCapacityBalance(Strategy):
    """Move volumes from full pools to others.

    It uses the planner `weight`, because the planner that Watcher uses refuses `volume_migrate`.
    """

    name = "storage_capacity_balance"
    display_name = "Storage Capacity Balance Strategy"
    goal = "workload_balancing"
    schema = {
        "type": "object",
        "properties": {
            "volume_threshold": {
                "description": "The use of a pool from which volumes are moved away, in percent.",
                "type": "number",
                "minimum": 0,
                "maximum": 100,
                "default": 80.0,
            },
        },
    }

    def models(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        return (STORAGE,)

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        balance = Balance(cluster.storage, parameters["volume_threshold"] / 100)
        solution = balance.solve()
        # These indicators are about servers, of which none is moved.
        solution.indicators = {"instance_migrations_count": 0, "instances_count": 0}
        return solution


class Balance:
    """The pools, with the free capacity of each and the capacity that can still be provisioned, in GB."""

    def __init__(self, storage: StorageSnapshot, threshold: float) -> None:
        self.storage, self.threshold = storage, threshold
        self.pools = [pool for pool in storage.pools.values() if pool.name.partition("#")[2] != EXCLUDED_POOL]
        self.free = {pool.name: float(pool.free_capacity_gb) for pool in self.pools}
        self.provisionable = {pool.name: float(pool.virtual_free) for pool in self.pools}
        self.solution = Solution()

    def solve(self) -> Solution:
        full = [pool for pool in self.pools if self.use(pool) >= self.threshold]
        targets = [pool for pool in self.pools if self.use(pool) < self.threshold]
        for source in sorted(full, key=lambda pool: (-self.use(pool), pool.name)):
            for volume in sorted(filter(is_movable, source.volumes), key=order):
                if self.use(source) < self.threshold:
                    break
                target = self.find_target(volume, targets)
                if target:
                    self.move(volume, source, target)
        return self.solution

    def use(self, pool: PoolSnapshot, added: float = 0) -> float:
        return 1 - (self.free[pool.name] - added) / max(pool.total_capacity_gb, 1)

    def find_target(self, volume: VolumeSnapshot, targets: list[PoolSnapshot]) -> PoolSnapshot | None:
        """Return the pool with the lowest use that allows the volume and remains below the threshold with it."""
        fitting = [
            pool
            for pool in targets
            if self.use(pool, volume.size) < self.threshold
            and volume.size <= self.provisionable[pool.name]
            and (volume.volume_type is None or self.find_type(volume, pool))
        ]
        return min(fitting, key=lambda pool: (self.use(pool), pool.name), default=None)

    def find_type(self, volume: VolumeSnapshot, pool: PoolSnapshot) -> str | None:
        """Return a type of the pool with the same extra specs as that of the volume, preferably the type itself."""
        types = self.storage.volume_types
        type_features = types.get(volume.volume_type or "")
        served = self.storage.nodes[pool.host].volume_type
        same = [name for name in served if name in types and types[name] == type_features]
        return volume.volume_type if volume.volume_type in same else next(iter(same), None)

    def move(self, volume: VolumeSnapshot, source: PoolSnapshot, target: PoolSnapshot) -> None:
        """Migrate a volume, or retype it if the pool provides another type with the same specs."""
        to_type = self.find_type(volume, target) if volume.volume_type else None
        inputs = (
            {"migration_type": "retype", "destination_type": to_type}
            if to_type and to_type != volume.volume_type
            else {"migration_type": "migrate", "destination_node": target.name}
        )
        self.solution.add("volume_migrate", {**inputs, "resource_name": volume.name}, resource_id=str(volume.uuid))
        for pool, size in ((source, -volume.size), (target, volume.size)):
            self.free[pool.name] -= size
            self.provisionable[pool.name] -= size


def is_movable(volume: VolumeSnapshot) -> bool:
    return volume.status in {AVAILABLE, IN_USE} and not volume.has_snapshots


def order(volume: VolumeSnapshot) -> tuple[bool, bool, int, str]:
    """Return the sort key: available volumes, then used ones, then bootable used ones; each from small to large."""
    in_use = volume.status == IN_USE
    return in_use, in_use and volume.bootable, volume.size, str(volume.uuid)
