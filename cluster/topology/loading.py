"""Load a topology into the tables of the embedded cloud, its load balancers included, completely or not at all."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction

from cluster.drivers.base import cloud
from cluster.json_lines import Misfit
from cluster.models import BalancingMember, BalancingPool, ComputeNode, Flavor, HostAggregate, Server
from cluster.synchronization.rows import (
    BATCH,
    Collection,
    Entry,
    Report,
    count,
    find,
    match,
    require_unique,
    write_entries,
    write_pairs,
)
from cluster.topology.format import check_topology
from cluster.topology.storage import load_storage_topology
from watcher_site.database.locks import lock_table
from watcher_site.refusals import Conflict

RESOURCES = ("vcpus", "memory", "disk")
COMPUTE_NODES = Collection("compute_nodes", ComputeNode, "compute node", "hostname")
HOST_AGGREGATES = Collection("host_aggregates", HostAggregate, "host aggregate", "id", frozenset({"compute_nodes"}))
FLAVORS = Collection("flavors", Flavor, "flavor", "name", columns={"id": "flavor_id"})
SERVERS = Collection("servers", Server, "server", "name", frozenset({"node"}))
POOLS = Collection("balancing_pools", BalancingPool, "load-balancer pool", "name", frozenset({"members"}))
COLUMNS = ("port", "weight", "connections")


@transaction.atomic
def load_topology(document: Any) -> Report:
    """Update the tables from a topology. Rows that it does not name stay as they are.

    A row is identified by its UUID or, without one, by its name; a deleted row is restored if it is identified by its
    UUID. Attributes left out keep their value, and have the default in a new row.

    Raises:
        Misfit: the topology contradicts itself, or the tables.
        Conflict: the tables mirror another cloud.
    """
    if cloud().is_mirrored:
        raise Conflict("WATCHER_CLOUD: the tables mirror a real cloud, and only the embedded cloud can be filled.")
    check_topology(document)
    lock_table(ComputeNode)
    # All rows, in one query for each table: a topology may name any of them, and all use capacity.
    # Servers first, as the embedded cloud locks them: it and this do not wait for each other.
    servers = list(
        Server.objects.select_for_update(of=("self",), no_key=True).select_related("new_flavor").order_by("pk")
    )
    nodes = COMPUTE_NODES.rows()
    node_entries = match(document.get("compute_nodes", []), COMPUTE_NODES, nodes)
    server_entries = match(document.get("servers", []), SERVERS, servers)
    existing = {row.pk: row for row in nodes}
    hosts = {row.hostname: row for row in [*nodes, *(entry.row for entry in node_entries)] if not row.deleted_at}
    places = assign_nodes(server_entries, hosts, existing)
    check_node_capacity(node_entries, server_entries, places, [row for row in servers if not row.deleted_at], existing)
    write_entries(node_entries)
    for entry in server_entries:
        entry.row.node = places[entry.path]
    write_entries(server_entries)
    others = [*load_aggregates(document, hosts), *load_flavors(document)]
    named = by_name_and_uuid([*servers, *(entry.row for entry in server_entries)])
    storage, pools = load_storage_topology(document, named), load_balancing(document, named)
    return count([*node_entries, *server_entries, *others, *storage, *pools])


def by_name_and_uuid(servers: list[Server]) -> dict[str, Server]:
    """Return the servers by what a topology may call them; of several of one name the first counts."""
    there = [server for server in reversed(servers) if not server.deleted_at]
    return {str(server.uuid): server for server in there} | {server.name: server for server in there}


def load_aggregates(document: Mapping[str, Any], hosts: Mapping[str, ComputeNode]) -> list[Entry]:
    if not document.get("host_aggregates"):
        return []
    rows = HOST_AGGREGATES.rows()
    entries = match(document["host_aggregates"], HOST_AGGREGATES, rows)
    require_unique(entries, HOST_AGGREGATES, "name", rows)
    members = []
    for entry in (entry for entry in entries if "compute_nodes" in entry.item):
        wanted = enumerate(entry.item["compute_nodes"])
        path = [*entry.path, "compute_nodes"]
        members.append((entry, [find(hosts, name, "compute node", [*path, position]) for position, name in wanted]))
    write_entries(entries)
    write_pairs(members, HostAggregate.nodes.through, "hostaggregate", "computenode")
    return entries


def load_flavors(document: Mapping[str, Any]) -> list[Entry]:
    if not document.get("flavors"):
        return []
    rows = FLAVORS.rows()
    entries = match(document["flavors"], FLAVORS, rows)
    require_unique(entries, FLAVORS, "id", rows)
    write_entries(entries)
    return entries


def assign_nodes(
    entries: Iterable[Entry], hosts: Mapping[str, ComputeNode], existing: Mapping[int, ComputeNode]
) -> dict[tuple[str | int, ...], ComputeNode | None]:
    """Return the node of each server: the one that the topology names, else the one that it is on."""
    places: dict[tuple[str | int, ...], ComputeNode | None] = {}
    for entry in entries:
        before = existing.get(entry.row.node_id)
        hostname: str | None = before.hostname if before else None
        hostname = entry.item.get("node", hostname)
        if hostname is not None and hostname not in hosts:
            raise Misfit([*entry.path, "node"], f"there is no compute node {hostname}.")
        places[entry.path] = after = None if hostname is None else hosts[hostname]
        require_sense(entry, after)
        if after is not before:
            if entry.row.destination_id:
                raise Misfit([*entry.path, "node"], f"{entry.row.name} is being migrated.")
            entry.changed.add("node")
    return places


def require_sense(entry: Entry, node: ComputeNode | None) -> None:
    """Raise `Misfit` for a PENDING server that is on a node, or has run: it would never be built."""
    if entry.row.state != Server.State.PENDING:
        return
    path = [*entry.path, "state" if "state" in entry.item else "node"]
    if node:
        raise Misfit(path, f"a server that is pending is on no node, and {entry.row.name} is on {node.hostname}.")
    if entry.row.launched_at:
        raise Misfit(path, f"a server that is pending has never run, and {entry.row.name} has.")


def check_node_capacity(
    node_entries: Iterable[Entry],
    server_entries: Iterable[Entry],
    places: Mapping[tuple[str | int, ...], ComputeNode | None],
    servers: Iterable[Server],
    existing: Mapping[int, ComputeNode],
) -> None:
    """Raise `Misfit` where the topology puts more on a node than it holds. What it leaves alone is not judged."""
    used: defaultdict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(RESOURCES, 0))

    def take(server: Server, node: ComputeNode | None) -> None:
        if node:
            for resource in RESOURCES:
                used[node.hostname][resource] += server.taken(resource)

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
            raise Misfit(
                [*entry.path, resource],
                f"{node.hostname} has room for {capacity:g} in all, and its servers take {used[resource]}.",
            )


def load_balancing(document: Mapping[str, Any], servers: Mapping[Any, Server]) -> list[Entry]:
    """Bring the pools of load balancers in line, with the servers by name and by UUID that may be in them.

    Raises:
        Misfit: it makes no sense beside what stands in the tables.
    """
    if not document.get(POOLS.name):
        return []
    entries = match(document[POOLS.name], POOLS, POOLS.rows())
    wanted = [(entry, map_members(entry, servers)) for entry in entries if "members" in entry.item]
    write_entries(entries)
    write_pool_members(wanted)
    return entries


def map_members(entry: Entry, servers: Mapping[Any, Server]) -> dict[int, Mapping[str, Any]]:
    """Return what a topology says of each member, by its server's primary key."""
    found: dict[int, Mapping[str, Any]] = {}
    for position, item in enumerate(entry.item["members"]):
        path = [*entry.path, "members", position, "server"]
        server = find(servers, item["server"], "server", path)
        if server.pk in found:
            raise Misfit(path, f"{server.name} is in the pool already.")
        found[server.pk] = item
    return found


def write_pool_members(wanted: Iterable[tuple[Entry, Mapping[int, Mapping[str, Any]]]]) -> None:
    """Set the members of each pool; attributes that the topology leaves out keep their value."""
    pools = {entry.row.pk: entry for entry, _ in wanted}
    existing = {(row.pool_id, row.server_id): row for row in BalancingMember.objects.filter(pool__in=pools)}
    new, changed = [], []
    for entry, members in wanted:
        for server, item in members.items():
            row = existing.pop((entry.row.pk, server), None)
            values = {name: item[name] for name in COLUMNS if name in item}
            if row is None:
                new.append(BalancingMember(pool=entry.row, server_id=server, **values))
            elif any(getattr(row, name) != value for name, value in values.items()):
                vars(row).update(values)
                changed.append(row)
    for row in [*new, *changed, *existing.values()]:
        pools[row.pool_id].members_changed = True
    BalancingMember.objects.filter(pk__in=[row.pk for row in existing.values()]).delete()
    BalancingMember.objects.bulk_create(new, batch_size=BATCH)
    BalancingMember.objects.bulk_update(changed, COLUMNS, batch_size=BATCH)
