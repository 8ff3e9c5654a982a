"""How a topology comes into the tables of the embedded cloud: all of it, or nothing."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from cluster.json_lines import Misfit
from cluster.models import ComputeNode, Server
from cluster.topology import check_topology
from watcher_site.locks import lock_table

BATCH = 500
RESOURCES = ("vcpus", "memory", "disk")


@dataclass
class Entry:
    """One object of a topology and the row that it becomes; ``changed`` names the columns that it changes."""

    path: tuple[str | int, ...]
    item: Mapping[str, Any]
    row: Any
    is_new: bool
    changed: set[str] = field(default_factory=set)

    def set(self, column: str, value: Any) -> None:
        if getattr(self.row, column) != value:
            setattr(self.row, column, value)
            self.changed.add(column)


@dataclass(frozen=True)
class Report:
    created: int
    changed: int
    unchanged: int


@transaction.atomic
def load_topology(document: Any) -> Report:
    """Bring the tables in line with a topology. What it does not name stays as it is.

    A compute node is known by its UUID or its host name, a server by its UUID or its name; one that was deleted comes
    back if it is known by its UUID. Attributes left out keep their value, in a new row the default.

    Raises:
        Misfit: the topology makes no sense, by itself or beside what stands in the tables.
    """
    check_topology(document)
    lock_table(ComputeNode)
    # All rows, in one query a table: a topology may name any of them, and room is taken by all.
    nodes = list(ComputeNode.objects.select_for_update().order_by("pk"))
    servers = list(Server.objects.select_for_update().order_by("pk"))
    node_entries = match(document.get("compute_nodes", []), "compute_nodes", "hostname", nodes)
    server_entries = match(document.get("servers", []), "servers", "name", servers)
    standing = {row.pk: row for row in nodes}
    hosts = {row.hostname: row for row in [*nodes, *(entry.row for entry in node_entries)] if not row.deleted_at}
    places = place(server_entries, hosts, standing)
    check_room(node_entries, server_entries, places, [row for row in servers if not row.deleted_at], standing)
    write(node_entries)
    for entry in server_entries:
        entry.row.node = places[entry.path]
    write(server_entries)
    return count([*node_entries, *server_entries])


def match(items: Iterable[Mapping[str, Any]], collection: str, key: str, rows: Iterable[Any]) -> list[Entry]:
    """Find or make the row of each object, and set the columns that the object names."""
    rows = list(rows)
    model: Any = ComputeNode if collection == "compute_nodes" else Server
    by_uuid = {row.uuid: row for row in rows}
    by_key = {getattr(row, key): row for row in reversed(rows) if not row.deleted_at}
    found = []
    for position, item in enumerate(items):
        named = by_key.get(item[key])
        row = by_uuid.get(UUID(item["uuid"])) if "uuid" in item else named
        if "uuid" in item and named and named is not row:
            raise Misfit([collection, position, key], f"{item[key]} stands in the cloud with the uuid {named.uuid}.")
        entry = Entry((collection, position), item, row or model(), row is None)
        for column, value in item.items():
            if column != "node":
                entry.set(column, UUID(value) if column == "uuid" else value)
        if entry.row.deleted_at:
            entry.set("deleted_at", None)
        found.append(entry)
    return found


def place(
    entries: Iterable[Entry], hosts: Mapping[str, ComputeNode], standing: Mapping[int, ComputeNode]
) -> dict[tuple[str | int, ...], ComputeNode | None]:
    """Return the node of each server: the one that the topology names, else the one that it is on."""
    places: dict[tuple[str | int, ...], ComputeNode | None] = {}
    for entry in entries:
        before = standing.get(entry.row.node_id)
        hostname: str | None = before.hostname if before else None
        hostname = entry.item.get("node", hostname)
        if hostname is not None and hostname not in hosts:
            raise Misfit([*entry.path, "node"], f"there is no compute node {hostname}.")
        places[entry.path] = after = None if hostname is None else hosts[hostname]
        if after is not before:
            if entry.row.destination_id:
                raise Misfit([*entry.path, "node"], f"{entry.row.name} is being migrated.")
            entry.changed.add("node")
    return places


def check_room(
    node_entries: Iterable[Entry],
    server_entries: Iterable[Entry],
    places: Mapping[tuple[str | int, ...], ComputeNode | None],
    servers: Iterable[Server],
    standing: Mapping[int, ComputeNode],
) -> None:
    """Raise `Misfit` where the topology puts more on a node than it holds. What it leaves alone is not judged."""
    used: defaultdict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(RESOURCES, 0))

    def take(server: Server, node: ComputeNode | None) -> None:
        if node:
            for resource in RESOURCES:
                used[node.hostname][resource] += getattr(server, resource)

    moving = {id(entry.row) for entry in server_entries if entry.changed}
    for server in servers:
        if id(server) not in moving:
            take(server, standing.get(server.node_id or 0))
        take(server, standing.get(server.destination_id or 0))
    for entry in node_entries:
        require_room(entry, entry.row, used[entry.row.hostname])
    for entry in server_entries:
        node = places[entry.path]
        if entry.changed and node:
            take(entry.row, node)
            require_room(entry, node, used[node.hostname])


def require_room(entry: Entry, node: ComputeNode, used: Mapping[str, int]) -> None:
    for resource in RESOURCES:
        capacity = getattr(node, f"capacity_{resource}")
        if entry.changed and used[resource] > capacity:
            raise Misfit(
                [*entry.path, resource],
                f"{node.hostname} has room for {capacity:g} in all, and its servers take {used[resource]}.",
            )


def write(entries: Iterable[Entry]) -> None:
    """Insert the new rows and update the changed ones, each in few statements."""
    entries = list(entries)
    new = [entry for entry in entries if entry.is_new]
    changed = [entry for entry in entries if entry.changed and not entry.is_new]
    for entry in changed:
        entry.row.updated_at = timezone.now()
    columns = {column for entry in changed for column in entry.changed}
    if new:
        type(new[0].row).objects.bulk_create([entry.row for entry in new], batch_size=BATCH)
    if changed:
        rows = [entry.row for entry in changed]
        type(rows[0]).objects.bulk_update(rows, [*sorted(columns), "updated_at"], batch_size=BATCH)


def count(entries: Iterable[Entry]) -> Report:
    entries = list(entries)
    created = sum(entry.is_new for entry in entries)
    changed = sum(bool(entry.changed) and not entry.is_new for entry in entries)
    return Report(created, changed, len(entries) - created - changed)
