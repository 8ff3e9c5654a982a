"""Builders of small clusters in memory."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from audits.operations.strategies import complete_parameters
from audits.strategies.base import Solution, Strategy
from cluster.snapshot import ClusterSnapshot, NodeSnapshot, ServerSnapshot
from cluster.snapshot.storage import PoolSnapshot, StorageNodeSnapshot, StorageSnapshot, VolumeSnapshot
from watcher_site.plugins import load


def server(name: str, **attributes: Any) -> ServerSnapshot:
    return ServerSnapshot(
        **{
            "uuid": uuid4(),
            "name": name,
            "state": "active",
            "vcpus": 2,
            "memory": 2048,
            "disk": 20,
            "metadata": {},
            "project_id": "",
            "locked": False,
            "pinned_az": "",
            "flavor_extra_specs": {},
            **attributes,
        }
    )


def node(hostname: str, *servers: ServerSnapshot, vcpus: int = 16, **attributes: Any) -> NodeSnapshot:
    return NodeSnapshot(
        **{
            "uuid": uuid4(),
            "hostname": hostname,
            "status": "enabled",
            "disabled_reason": None,
            "state": "up",
            "vcpus": vcpus,
            "vcpu_reserved": 0,
            "vcpu_ratio": 1.0,
            "memory": 32768,
            "memory_mb_reserved": 0,
            "memory_ratio": 1.0,
            "disk": 500,
            "disk_gb_reserved": 0,
            "disk_ratio": 1.0,
            "capacity_vcpus": vcpus,
            "capacity_memory": 32768,
            "capacity_disk": 500,
            "servers": list(servers),
            **attributes,
        }
    )


def volume(name: str, **attributes: Any) -> VolumeSnapshot:
    return VolumeSnapshot(
        **{
            "uuid": uuid4(),
            "name": name,
            "size": 10,
            "status": "available",
            "host": "",
            "volume_type": None,
            "multiattach": False,
            "bootable": False,
            "snapshot_id": "",
            "has_snapshots": False,
            "project_id": "",
            "metadata": {},
            "created_at": server("any").created_at,
            **attributes,
        }
    )


def pool(name: str, *volumes: VolumeSnapshot, total: int = 100) -> PoolSnapshot:
    """Return a pool of ``total`` GB that holds the volumes."""
    used = sum(volume.size for volume in volumes)
    for held in volumes:
        held.host = name
    return PoolSnapshot(
        uuid=uuid4(),
        name=name,
        host=name.partition("#")[0],
        total_volumes=len(volumes),
        total_capacity_gb=total,
        free_capacity_gb=total - used,
        provisioned_capacity_gb=used,
        allocated_capacity_gb=used,
        virtual_free=total - used,
        max_over_subscription_ratio=1.0,
        volumes=list(volumes),
    )


def storage(*pools: PoolSnapshot, **volume_types: dict[str, Any]) -> StorageSnapshot:
    """Return storage in which every node supports every volume type."""
    nodes: dict[str, StorageNodeSnapshot] = {}
    for held in pools:
        found = nodes.setdefault(
            held.host, StorageNodeSnapshot(uuid4(), held.host, "nova", "enabled", "up", sorted(volume_types))
        )
        found.pools.append(held)
    return StorageSnapshot(nodes, volume_types)


def cluster(
    *nodes: NodeSnapshot, measured: Mapping[str, Mapping[str, float]] | None = None, **attributes: Any
) -> ClusterSnapshot:
    """Return a cluster; ``measured`` maps names of readings to values by the names of servers and nodes."""
    named = {server.name: str(server.uuid) for node in nodes for server in node.servers}
    readings = {
        reading: {named.get(name, name): value for name, value in values.items()}
        for reading, values in (measured or {}).items()
    }
    return ClusterSnapshot({node.hostname: node for node in nodes}, measurements=readings, **attributes)


def solve(name: str, seen: ClusterSnapshot, **parameters: Any) -> Solution:
    """Return the solution of a strategy, with the parameters completed by their defaults."""
    strategy: Strategy = load("STRATEGIES")[name]()
    return strategy.solve(seen, complete_parameters(strategy.schema, parameters))


def listed(solution: Solution) -> list[tuple[str, dict[str, Any]]]:
    return [(action.action_type, dict(action.input_parameters)) for action in solution.actions]


def moves(solution: Solution) -> list[tuple[str, str, str | None]]:
    """Return the migrations of a solution: server, source and destination."""
    return [
        (found["resource_name"], found["source_node"], found.get("destination_node"))
        for kind, found in listed(solution)
        if kind == "migrate"
    ]


def services(solution: Solution) -> list[tuple[str, str]]:
    """Return the changes of compute services: the host and its new state."""
    return [
        (found["resource_name"], found["state"])
        for kind, found in listed(solution)
        if kind == "change_nova_service_state"
    ]
