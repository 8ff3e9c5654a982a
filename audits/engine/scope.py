"""The application of an audit's scope to a cluster snapshot.

Including rules are combined: nodes that no rule matches are removed. Then, excluding rules remove nodes with all their
servers or pools. Servers that are excluded by UUID, project or metadata stay in the snapshot and are marked with
``watcher_exclude``. Excluded volumes are removed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from audits.operations.scope import compute_rules, exclusions, find_rules, storage_rules
from cluster.snapshot import ClusterSnapshot, NodeSnapshot, ServerSnapshot
from cluster.snapshot.storage import PoolSnapshot, StorageNodeSnapshot, StorageSnapshot

Rules = Sequence[Mapping[str, Any]]
ANY = "*"


def apply_scope(cluster: ClusterSnapshot, scope: list[Any]) -> ClusterSnapshot:
    """Return the part of a cluster within a scope. It includes all PENDING servers."""
    rules = compute_rules(scope)
    mark_excluded_servers(cluster.waiting, exclusions(rules))
    return ClusterSnapshot(
        narrow_compute(cluster.nodes, rules),
        narrow_storage(cluster.storage, storage_rules(scope)),
        waiting=cluster.waiting,
    )


def rule_values(rules: Rules, kind: str, attribute: str) -> set[Any]:
    return {entry[attribute] for entry in find_rules(rules, kind) if attribute in entry}


def narrow_compute(nodes: Mapping[str, NodeSnapshot], rules: Rules) -> dict[str, NodeSnapshot]:
    excluded = exclusions(rules)
    is_included, is_excluded = node_predicate(rules), aggregate_predicate(excluded)
    hostnames = rule_values(excluded, "compute_nodes", "name")
    narrowed = {
        hostname: node
        for hostname, node in nodes.items()
        if is_included(node) and not is_excluded(node) and hostname not in hostnames
    }
    mark_excluded_servers(
        [server for node in narrowed.values() for server in [*node.servers, *node.arriving]], excluded
    )
    return narrowed


def node_predicate(rules: Rules) -> Callable[[NodeSnapshot], bool]:
    """Return a predicate for nodes in the aggregates or zones of the rules; without any, all nodes match."""
    if not [*find_rules(rules, "host_aggregates"), *find_rules(rules, "availability_zones")]:
        return lambda node: True
    zones, is_member = rule_values(rules, "availability_zones", "name"), aggregate_predicate(rules)
    return lambda node: ANY in zones or node.zone in zones or is_member(node)


def aggregate_predicate(rules: Rules) -> Callable[[NodeSnapshot], bool]:
    """Return a predicate for nodes in the aggregates of the rules, by id, UUID or name; ``*`` is any aggregate."""
    ids, names = rule_values(rules, "host_aggregates", "id"), rule_values(rules, "host_aggregates", "name")
    if ANY in ids | names:
        return lambda node: bool(node.aggregates)
    return lambda node: any(
        group.id in ids or str(group.uuid) in ids or group.name in names for group in node.aggregates
    )


def mark_excluded_servers(servers: Sequence[ServerSnapshot], excluded: Rules) -> None:
    """Set ``watcher_exclude`` on the servers that match the exclusions."""
    uuids = {uuid.lower() for uuid in rule_values(excluded, "instances", "uuid")}
    projects = rule_values(excluded, "projects", "uuid")
    has_metadata = metadata_predicate(
        [pair for entry in find_rules(excluded, "instance_metadata") for pair in entry.items()]
    )
    for server in servers:
        if str(server.uuid) in uuids or server.project_id in projects or has_metadata(server):
            server.watcher_exclude = True


def metadata_predicate(pairs: Sequence[tuple[str, Any]]) -> Callable[[ServerSnapshot], bool]:
    """Return a predicate for servers whose metadata contain one of these pairs, ignoring the case of values."""
    accepted = {(key, str(value).lower()) for key, value in pairs}
    return lambda server: any((key, str(value).lower()) in accepted for key, value in server.metadata.items())


def narrow_storage(storage: StorageSnapshot, rules: Rules) -> StorageSnapshot:
    zones, types = rule_values(rules, "availability_zones", "name"), rule_values(rules, "volume_types", "name")
    all_nodes = ANY in zones | types or not zones | types
    narrowed = {
        host: node
        for host, node in storage.nodes.items()
        if all_nodes or node.zone in zones or types.intersection(node.volume_type)
    }
    for node in narrowed.values():
        remove_storage(node, exclusions(rules))
    return StorageSnapshot(narrowed, storage.volume_types)


def remove_storage(node: StorageNodeSnapshot, excluded: Rules) -> None:
    """Remove excluded pools and volumes. The capacity of removed volumes remains allocated in their pools."""
    names = rule_values(excluded, "storage_pools", "name")
    node.pools = [pool for pool in node.pools if pool.name not in names]
    for pool in node.pools:
        remove_volumes(pool, excluded)


def remove_volumes(pool: PoolSnapshot, excluded: Rules) -> None:
    uuids = {uuid.lower() for uuid in rule_values(excluded, "volumes", "uuid")}
    projects = rule_values(excluded, "projects", "uuid")
    pool.volumes = [
        volume for volume in pool.volumes if str(volume.uuid) not in uuids and volume.project_id not in projects
    ]
