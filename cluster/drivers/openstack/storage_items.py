"""Convert openstacksdk's block storage resources to values of our columns."""

from collections.abc import Iterable
from typing import Any

from cluster.models import StorageNode
from cluster.models.compute import DEFAULT_ZONE
from cluster.synchronization.cloud_contents import Item


def type_item(kind: Any) -> Item:
    return {"uuid": kind.id, "name": kind.name, "extra_specs": kind.extra_specs or {}}


def storage_node_item(service: Any, pools: Iterable[Any], types: Iterable[Any]) -> Item:
    """Return a backend. It serves the types that one of its pools takes."""
    own = [pool for pool in pools if pool.name.partition("#")[0] == service.host]
    return {
        "host": service.host,
        "zone": service.availability_zone or DEFAULT_ZONE,
        "status": service.status if service.status in StorageNode.Status.values else StorageNode.Status.DISABLED,
        "state": service.state if service.state in StorageNode.State.values else StorageNode.State.DOWN,
        "volume_types": [kind.name for kind in types if any(takes(pool, kind) for pool in own)],
    }


def takes(pool: Any, kind: Any) -> bool:
    """Return whether a pool accepts volumes of a type, according to the name of the backend."""
    wanted = (kind.extra_specs or {}).get("volume_backend_name")
    return wanted is None or wanted == (pool.capabilities or {}).get("volume_backend_name")


def pool_item(pool: Any, volumes: Iterable[Any]) -> Item:
    """Return a pool. A capacity that the backend calls infinite or unknown reads 0: nothing is planned into it."""
    reported = pool.capabilities or {}
    total = read_capacity(reported.get("total_capacity_gb"))
    provisioned = read_capacity(reported.get("provisioned_capacity_gb"))
    ratio = read_capacity(reported.get("max_over_subscription_ratio")) or 1.0
    return {
        "name": pool.name,
        "storage_node": pool.name.partition("#")[0],
        "total_volumes": sum(volume.host == pool.name for volume in volumes),
        "total_capacity_gb": int(total),
        "free_capacity_gb": int(read_capacity(reported.get("free_capacity_gb"))),
        "provisioned_capacity_gb": int(provisioned),
        "allocated_capacity_gb": int(read_capacity(reported.get("allocated_capacity_gb"))),
        "max_over_subscription_ratio": ratio,
        "virtual_free": int(total * ratio - provisioned),
    }


def read_capacity(reported: Any) -> float:
    """Return a capacity in GB; 0 for one that is no number."""
    try:
        value = float(reported)
    except (TypeError, ValueError):
        return 0
    return value if 0 <= value < float("inf") else 0


def volume_item(volume: Any) -> Item:
    return {
        "uuid": volume.id,
        "name": str(volume.name or "")[:255],
        "size": volume.size,
        "status": volume.status,
        "pool": volume.host,
        "volume_type": volume.volume_type,
        "migration_status": volume.migration_status,
        "multiattach": bool(volume.is_multiattach),
        "bootable": bool(volume.is_bootable),
        "snapshot_id": volume.snapshot_id or "",
        "project_id": volume.project_id or "",
        "metadata": volume.metadata or {},
        "created_at": volume.created_at,
    }


def attachment_items(volume: Any) -> list[Item]:
    return [
        {"uuid": found["attachment_id"], "volume": volume.id, "server": found["server_id"]}
        for found in volume.attachments or []
        if found.get("attachment_id") and found.get("server_id")
    ]
