"""The snapshot of the block storage: storage nodes, their pools, and volumes. Sizes are in GB."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from cluster.models import Pool, StorageNode, Volume, VolumeAttachment, VolumeType


@dataclass
class VolumeSnapshot:
    """A volume; each attachment has a ``server_id`` and an ``attachment_id``, ``host`` is the pool's name."""

    uuid: UUID
    name: str
    size: int
    status: str
    host: str
    volume_type: str | None
    multiattach: bool
    bootable: bool
    snapshot_id: str
    has_snapshots: bool
    project_id: str
    metadata: dict[str, Any]
    created_at: datetime
    attachments: list[dict[str, str]] = field(default_factory=list)


@dataclass
class PoolSnapshot:
    """A pool with the capacities that the cloud reports; ``host`` is that of its storage node."""

    uuid: UUID
    name: str
    host: str
    total_volumes: int
    total_capacity_gb: int
    free_capacity_gb: int
    provisioned_capacity_gb: int
    allocated_capacity_gb: int
    virtual_free: int
    max_over_subscription_ratio: float
    volumes: list[VolumeSnapshot] = field(default_factory=list)


@dataclass
class StorageNodeSnapshot:
    """A storage node; ``volume_type`` contains the names of the types that it accepts, sorted."""

    uuid: UUID
    host: str
    zone: str
    status: str
    state: str
    volume_type: list[str] = field(default_factory=list)
    pools: list[PoolSnapshot] = field(default_factory=list)


@dataclass
class StorageSnapshot:
    """The storage nodes by host, sorted, and the extra specs of volume types by name."""

    nodes: dict[str, StorageNodeSnapshot] = field(default_factory=dict)
    volume_types: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def pools(self) -> dict[str, PoolSnapshot]:
        return {pool.name: pool for node in self.nodes.values() for pool in node.pools}

    @property
    def volumes(self) -> list[VolumeSnapshot]:
        return [volume for pool in self.pools.values() for volume in pool.volumes]

    def serves(self, pool: PoolSnapshot, volume_type: str | None) -> bool:
        """Return whether a pool accepts volumes of a type; None means no type."""
        return volume_type is None or volume_type in self.nodes[pool.host].volume_type


def columns(model: Any, *excluded: str) -> list[str]:
    """Return the fields of a snapshot class that are columns of its table, except for some."""
    return [name for name in model.__dataclass_fields__ if name not in excluded]


def load_storage_snapshot() -> StorageSnapshot:
    """Load the tables in six queries. Volumes without a pool are omitted."""
    rows = StorageNode.objects.present().order_by("host").values("pk", *columns(StorageNodeSnapshot, *LISTS))
    nodes = {row.pop("pk"): StorageNodeSnapshot(**row) for row in rows}
    names = VolumeType.objects.present().order_by("name").values_list("pk", "name", "extra_specs")
    types = {key: (name, specs) for key, name, specs in names}
    for node, kind in StorageNode.volume_types.through.objects.values_list("storagenode_id", "volumetype_id"):
        if node in nodes and kind in types:
            nodes[node].volume_type.append(types[kind][0])
    for snapshot in nodes.values():
        snapshot.volume_type.sort()
    fill_pools(load_pools(nodes), {key: name for key, (name, _) in types.items()})
    return StorageSnapshot({node.host: node for node in nodes.values()}, dict(types.values()))


LISTS = ("volume_type", "pools")


def load_pools(nodes: dict[int, StorageNodeSnapshot]) -> dict[int, PoolSnapshot]:
    pools = {}
    names = columns(PoolSnapshot, "host", "volumes")
    for row in Pool.objects.present().order_by("name").values("pk", "storage_node_id", *names):
        key, node = row.pop("pk"), nodes.get(row.pop("storage_node_id"))
        if node:
            pools[key] = PoolSnapshot(host=node.host, **row)
            node.pools.append(pools[key])
    return pools


def fill_pools(pools: dict[int, PoolSnapshot], types: dict[int, str]) -> None:
    """Add the volumes to their pools."""
    attachments = load_attachments()
    names = columns(VolumeSnapshot, "host", "volume_type", "attachments")
    rows = Volume.objects.present().exclude(pool=None).order_by("name", "pk")
    for row in rows.values("pk", "pool_id", "volume_type_id", *names):
        key, pool, kind = row.pop("pk"), pools.get(row.pop("pool_id")), types.get(row.pop("volume_type_id"))
        if pool:
            pool.volumes.append(
                VolumeSnapshot(host=pool.name, volume_type=kind, attachments=attachments.get(key, []), **row)
            )


def load_attachments() -> dict[int, list[dict[str, str]]]:
    attachments = defaultdict(list)
    rows = VolumeAttachment.objects.present().filter(server__deleted_at=None).order_by("pk")
    for volume, uuid, server in rows.values_list("volume_id", "uuid", "server__uuid"):
        attachments[volume].append({"server_id": str(server), "attachment_id": str(uuid)})
    return attachments
