"""Loading of a topology into the tables of the embedded cloud, in one transaction."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction

from cluster.drivers.base import cloud
from cluster.json_lines import InvalidValue
from cluster.models import (
    BalancingMember,
    BalancingPool,
    ComputeNode,
    Flavor,
    HostAggregate,
    Pool,
    Server,
    StorageNode,
    Volume,
    VolumeAttachment,
    VolumeType,
)
from cluster.models.storage import update_usage
from cluster.synchronization.rows import (
    BATCH,
    Collection,
    Entry,
    Report,
    count_entries,
    find_by_name,
    index_rows,
    match_rows,
    require_unique,
    write_entries,
    write_pairs,
)
from cluster.topology.format import check_topology
from watcher_site.database.locks import lock_table
from watcher_site.refusals import Conflict

RESOURCES = ("vcpus", "memory", "disk")
COMPUTE_NODES = Collection("compute_nodes", ComputeNode, "compute node", "hostname")
HOST_AGGREGATES = Collection("host_aggregates", HostAggregate, "host aggregate", "id", frozenset({"compute_nodes"}))
FLAVORS = Collection("flavors", Flavor, "flavor", "name", columns={"id": "flavor_id"})
SERVERS = Collection("servers", Server, "server", "name", frozenset({"node"}))
VOLUME_TYPES = Collection("volume_types", VolumeType, "volume type", "name")
STORAGE_NODES = Collection("storage_nodes", StorageNode, "storage node", "host", frozenset({"volume_types"}))
POOLS = Collection("pools", Pool, "pool", "name")
VOLUMES = Collection("volumes", Volume, "volume", "name", frozenset({"pool", "volume_type", "attachments"}))
STORAGE_COLLECTIONS = (VOLUME_TYPES, STORAGE_NODES, POOLS, VOLUMES)
MemberLists = list[tuple[Entry, list[Any]]]
BALANCING_POOLS = Collection("balancing_pools", BalancingPool, "load-balancer pool", "name", frozenset({"members"}))
MEMBER_COLUMNS = ("port", "weight", "connections")


@transaction.atomic
def load_topology(document: Any) -> Report:
    """Update the tables from a topology. Rows that it does not name do not change.

    A row is identified by its UUID or, without one, by its name. A deleted row is restored if it is identified by its
    UUID. Missing attributes keep their value; in a new row they have the default.

    Raises:
        InvalidValue: a value is invalid, or conflicts with the tables.
        Conflict: the cloud is not the embedded one.
    """
    if cloud().is_mirrored:
        raise Conflict("WATCHER_CLOUD: the tables mirror a real cloud, and only the embedded cloud can be filled.")
    check_topology(document)
    lock_table(ComputeNode)
    # All rows, in one query for each table: a topology may name any of them, and all use capacity.
    # Servers before nodes, in the lock order of the embedded cloud.
    servers = list(
        Server.objects.select_for_update(of=("self",), no_key=True).select_related("new_flavor").order_by("pk")
    )
    nodes = COMPUTE_NODES.rows()
    node_entries = match_rows(document.get("compute_nodes", []), COMPUTE_NODES, nodes)
    server_entries = match_rows(document.get("servers", []), SERVERS, servers)
    existing = {row.pk: row for row in nodes}
    hosts = {row.hostname: row for row in [*nodes, *(entry.row for entry in node_entries)] if not row.deleted_at}
    places = assign_nodes(server_entries, hosts, existing)
    check_node_capacity(node_entries, server_entries, places, [row for row in servers if not row.deleted_at], existing)
    write_entries(node_entries)
    for entry in server_entries:
        entry.row.node = places[entry.path]
    write_entries(server_entries)
    further_entries = [*load_aggregates(document, hosts), *load_flavors(document)]
    servers_by_key = index_servers([*servers, *(entry.row for entry in server_entries)])
    storage, pools = load_storage_topology(document, servers_by_key), load_balancing(document, servers_by_key)
    return count_entries([*node_entries, *server_entries, *further_entries, *storage, *pools])


def index_servers(servers: list[Server]) -> dict[str, Server]:
    """Return the servers by name and by UUID. Of several servers with a name, the first one counts."""
    present = [server for server in reversed(servers) if not server.deleted_at]
    return {str(server.uuid): server for server in present} | {server.name: server for server in present}


def load_aggregates(document: Mapping[str, Any], hosts: Mapping[str, ComputeNode]) -> list[Entry]:
    if not document.get("host_aggregates"):
        return []
    rows = HOST_AGGREGATES.rows()
    entries = match_rows(document["host_aggregates"], HOST_AGGREGATES, rows)
    require_unique(entries, HOST_AGGREGATES, "name", rows)
    members = []
    for entry in (entry for entry in entries if "compute_nodes" in entry.item):
        references = enumerate(entry.item["compute_nodes"])
        path = [*entry.path, "compute_nodes"]
        members.append(
            (entry, [find_by_name(hosts, name, "compute node", [*path, position]) for position, name in references])
        )
    write_entries(entries)
    write_pairs(members, HostAggregate.nodes.through, "hostaggregate", "computenode")
    return entries


def load_flavors(document: Mapping[str, Any]) -> list[Entry]:
    if not document.get("flavors"):
        return []
    rows = FLAVORS.rows()
    entries = match_rows(document["flavors"], FLAVORS, rows)
    require_unique(entries, FLAVORS, "id", rows)
    write_entries(entries)
    return entries


def assign_nodes(
    entries: Iterable[Entry], hosts: Mapping[str, ComputeNode], existing: Mapping[int, ComputeNode]
) -> dict[tuple[str | int, ...], ComputeNode | None]:
    """Return the node of each server by its path: the one in the topology, else the current one."""
    places: dict[tuple[str | int, ...], ComputeNode | None] = {}
    for entry in entries:
        before = existing.get(entry.row.node_id)
        hostname: str | None = before.hostname if before else None
        hostname = entry.item.get("node", hostname)
        if hostname is not None and hostname not in hosts:
            raise InvalidValue([*entry.path, "node"], f"there is no compute node {hostname}.")
        places[entry.path] = after = None if hostname is None else hosts[hostname]
        check_pending_state(entry, after)
        if after is not before:
            if entry.row.destination_id:
                raise InvalidValue([*entry.path, "node"], f"{entry.row.name} is being migrated.")
            entry.changed.add("node")
    return places


def check_pending_state(entry: Entry, node: ComputeNode | None) -> None:
    """Raise `InvalidValue` for a PENDING server that has a node or has run, which would never be built."""
    if entry.row.state != Server.State.PENDING:
        return
    path = [*entry.path, "state" if "state" in entry.item else "node"]
    if node:
        raise InvalidValue(
            path, f"a server that is pending is on no node, and {entry.row.name} is on {node.hostname}."
        )
    if entry.row.launched_at:
        raise InvalidValue(path, f"a server that is pending has never run, and {entry.row.name} has.")


def check_node_capacity(
    node_entries: Iterable[Entry],
    server_entries: Iterable[Entry],
    places: Mapping[tuple[str | int, ...], ComputeNode | None],
    servers: Iterable[Server],
    existing: Mapping[int, ComputeNode],
) -> None:
    """Raise `InvalidValue` if the capacity of a node that the topology changes is exceeded."""
    used: defaultdict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(RESOURCES, 0))

    def take(server: Server, node: ComputeNode | None) -> None:
        if node:
            for resource, amount in server.reserved.items():
                used[node.hostname][resource] += amount

    moving = {id(entry.row) for entry in server_entries if entry.changed}
    for server in servers:
        if id(server) not in moving:
            take(server, existing.get(server.node_id or 0))
        take(server, existing.get(server.destination_id or 0))
    for entry in node_entries:
        require_node_capacity(entry, entry.row, used[entry.row.hostname])
    for entry in server_entries:
        node = places[entry.path]
        if entry.changed and node:
            take(entry.row, node)
            require_node_capacity(entry, node, used[node.hostname])


def require_node_capacity(entry: Entry, node: ComputeNode, used: Mapping[str, int]) -> None:
    for resource in RESOURCES:
        capacity = getattr(node, f"capacity_{resource}")
        if entry.changed and used[resource] > capacity:
            raise InvalidValue(
                [*entry.path, resource],
                f"{node.hostname} has a capacity of {capacity:g} in total, and its servers use {used[resource]}.",
            )


def load_balancing(document: Mapping[str, Any], servers: Mapping[Any, Server]) -> list[Entry]:
    """Update the pools of load balancers.

    Args:
        servers: servers by name and by UUID.

    Raises:
        InvalidValue: a value is invalid, or conflicts with the tables.
    """
    if not document.get(BALANCING_POOLS.name):
        return []
    entries = match_rows(document[BALANCING_POOLS.name], BALANCING_POOLS, BALANCING_POOLS.rows())
    references = [(entry, map_members(entry, servers)) for entry in entries if "members" in entry.item]
    write_entries(entries)
    write_pool_members(references)
    return entries


def map_members(entry: Entry, servers: Mapping[Any, Server]) -> dict[int, Mapping[str, Any]]:
    """Return the members in a topology by the primary key of the server."""
    members: dict[int, Mapping[str, Any]] = {}
    for position, item in enumerate(entry.item["members"]):
        path = [*entry.path, "members", position, "server"]
        server = find_by_name(servers, item["server"], "server", path)
        if server.pk in members:
            raise InvalidValue(path, f"{server.name} is in the pool already.")
        members[server.pk] = item
    return members


def write_pool_members(memberships: Iterable[tuple[Entry, Mapping[int, Mapping[str, Any]]]]) -> None:
    """Set the members of each pool. Missing attributes keep their value."""
    pools = {entry.row.pk: entry for entry, _ in memberships}
    existing = {(row.pool_id, row.server_id): row for row in BalancingMember.objects.filter(pool__in=pools)}
    new, changed = [], []
    for entry, members in memberships:
        for server, item in members.items():
            row = existing.pop((entry.row.pk, server), None)
            values = {name: item[name] for name in MEMBER_COLUMNS if name in item}
            if row is None:
                new.append(BalancingMember(pool=entry.row, server_id=server, **values))
            elif any(getattr(row, name) != value for name, value in values.items()):
                vars(row).update(values)
                changed.append(row)
    for row in [*new, *changed, *existing.values()]:
        pools[row.pool_id].members_changed = True
    BalancingMember.objects.filter(pk__in=[row.pk for row in existing.values()]).delete()
    BalancingMember.objects.bulk_create(new, batch_size=BATCH)
    BalancingMember.objects.bulk_update(changed, MEMBER_COLUMNS, batch_size=BATCH)


def load_storage_topology(document: Mapping[str, Any], servers: Mapping[Any, Server]) -> list[Entry]:
    """Update the storage tables.

    Args:
        servers: servers by name and by UUID.

    Raises:
        InvalidValue: a value is invalid, or conflicts with the tables.
    """
    if not any(document.get(collection.name) for collection in STORAGE_COLLECTIONS):
        return []
    # Volumes before pools, in the lock order of the embedded cloud.
    rows = {collection.name: collection.rows() for collection in reversed(STORAGE_COLLECTIONS)}
    types, nodes, pools, volumes = (match_rows(document.get(c.name, []), c, rows[c.name]) for c in STORAGE_COLLECTIONS)
    type_names = index_rows(types, rows["volume_types"], "name")
    served = find_volume_types(nodes, type_names)
    link_pools(pools, index_rows(nodes, rows["storage_nodes"], "host"))
    link_volumes(volumes, index_rows(pools, rows["pools"], "name"), type_names)
    attached = find_attached_servers(volumes, servers)
    check_pool_capacity(pools, volumes, rows["volumes"], rows["pools"])
    for entries in (types, nodes, pools, volumes):
        write_entries(entries)
    write_pairs(served, StorageNode.volume_types.through, "storagenode", "volumetype")
    write_pairs(attached, VolumeAttachment, "volume", "server")
    update_usage([*rows["pools"], *(entry.row for entry in pools if entry.is_new)])
    return [*types, *nodes, *pools, *volumes]


def find_volume_types(nodes: Iterable[Entry], types: Mapping[str, VolumeType]) -> MemberLists:
    return [
        (entry, find_all(types, entry, "volume_types", "volume type"))
        for entry in nodes
        if "volume_types" in entry.item
    ]


def find_all(names: Mapping[Any, Any], entry: Entry, attribute: str, kind: str) -> list[Any]:
    references = enumerate(entry.item[attribute])
    return [find_by_name(names, name, kind, [*entry.path, attribute, position]) for position, name in references]


def link_pools(pools: Iterable[Entry], nodes: Mapping[str, StorageNode]) -> None:
    """Link each pool to its storage node, whose host is the beginning of the pool's name."""
    for entry in pools:
        host = entry.row.name.partition("#")[0]
        entry.link("storage_node", find_by_name(nodes, host, "storage node", [*entry.path, "name"]))


def link_volumes(volumes: Iterable[Entry], pools: Mapping[str, Pool], types: Mapping[str, VolumeType]) -> None:
    for entry in volumes:
        if "pool" in entry.item:
            entry.link("pool", find_by_name(pools, entry.item["pool"], "pool", [*entry.path, "pool"]))
        if "volume_type" in entry.item:
            volume_type = find_by_name(types, entry.item["volume_type"], "volume type", [*entry.path, "volume_type"])
            entry.link("volume_type", volume_type)
        if entry.row.migration_status and entry.changed & {"pool", "volume_type", "size"}:
            raise InvalidValue([*entry.path], f"{entry.row.name} is being moved.")


def find_attached_servers(volumes: Iterable[Entry], servers: Mapping[Any, Server]) -> MemberLists:
    """Return the servers of each volume, and derive the volume's status if the topology contains none."""
    pairs = []
    for entry in volumes:
        if "attachments" not in entry.item:
            continue
        members = find_all(servers, entry, "attachments", "server")
        if len(members) > 1 and not entry.row.multiattach:
            raise InvalidValue(
                [*entry.path, "attachments"], "only a multiattach volume is attached to several servers."
            )
        if "status" not in entry.item and entry.row.status in {Volume.Status.AVAILABLE, Volume.Status.IN_USE}:
            entry.set("status", Volume.Status.IN_USE if members else Volume.Status.AVAILABLE)
        pairs.append((entry, members))
    return pairs


def check_pool_capacity(
    pools: Iterable[Entry], volumes: Iterable[Entry], existing: Iterable[Volume], rows: Iterable[Pool]
) -> None:
    """Raise `InvalidValue` if the capacity of a pool that the topology changes is exceeded."""
    by_key: dict[int | None, Pool] = {row.pk: row for row in rows}
    used: defaultdict[int, int] = defaultdict(int)
    moving = {id(entry.row) for entry in volumes if entry.changed}
    for volume in existing:
        if volume.deleted_at:
            continue
        if id(volume) not in moving:
            used[id(by_key.get(volume.pool_id))] += volume.size
        used[id(by_key.get(volume.destination_id))] += volume.size
    for entry in pools:
        if entry.changed:
            require_pool_capacity([*entry.path, "total_capacity_gb"], entry.row, used[id(entry.row)])
    for entry in volumes:
        pool = entry.links.get("pool") if "pool" in entry.links else by_key.get(entry.row.pool_id)
        if entry.changed and pool:
            used[id(pool)] += entry.row.size
            require_pool_capacity([*entry.path, "size"], pool, used[id(pool)])


def require_pool_capacity(path: list[str | int], pool: Pool, used: int) -> None:
    if used > pool.virtual_capacity_gb:
        raise InvalidValue(
            path, f"{pool.name} has a capacity of {pool.virtual_capacity_gb} in total, and its volumes use {used}."
        )
