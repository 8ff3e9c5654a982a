"""Write the contents of a cloud to our tables: in few statements, and completely or not at all.

`record_server` and the functions after it write a single object that a driver has just read; what the cloud's
notifications say of one is written by `cluster.synchronization.notified_objects`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from cluster.models import (
    ComputeNode,
    Flavor,
    HostAggregate,
    Pool,
    Server,
    StorageNode,
    Synchronization,
    Volume,
    VolumeAttachment,
    VolumeType,
)
from cluster.synchronization.cloud_contents import CloudContents, Item, StorageContents
from cluster.synchronization.rows import Collection, Entry, count, match, present, write_entries, write_pairs

# The identifiers of a cloud's objects; those of the embedded cloud are identified by name.
COMPUTE_NODES = Collection("compute_nodes", ComputeNode, "compute node", "uuid")
HOST_AGGREGATES = Collection("host_aggregates", HostAggregate, "host aggregate", "id", frozenset({"compute_nodes"}))
FLAVORS = Collection("flavors", Flavor, "flavor", "flavor_id")
SERVERS = Collection("servers", Server, "server", "uuid", frozenset({"node"}))
VOLUME_TYPES = Collection("volume_types", VolumeType, "volume type", "uuid")
STORAGE_NODES = Collection("storage_nodes", StorageNode, "storage node", "host", frozenset({"volume_types"}))
POOLS = Collection("pools", Pool, "pool", "name", frozenset({"storage_node"}))
VOLUMES = Collection("volumes", Volume, "volume", "uuid", frozenset({"pool", "volume_type"}))
ATTACHMENTS = Collection("attachments", VolumeAttachment, "volume attachment", "uuid", frozenset({"volume", "server"}))
# The columns beside the key that no two present rows may share.
UNIQUE = {ComputeNode: "hostname", HostAggregate: "name", Flavor: "name", VolumeType: "name"}


@dataclass
class MirrorReport:
    """The numbers of rows that were created, changed, removed, and already correct."""

    created: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    remarks: list[str] = field(default_factory=list)


@dataclass
class Mirrored:
    """One table and what was read for it. Rows that were written since the reading began know better than it."""

    collection: Collection
    entries: list[Entry]
    rows: list[Any]
    removed: int

    def by(self, column: str) -> dict[Any, Any]:
        """Return what will be there by the text of a column."""
        return {str(key): row for key, row in present(self.entries, self.rows, column).items()}


class Mirror:
    def __init__(self, since: datetime) -> None:
        self.since = since
        self.tables: list[Mirrored] = []

    def open(self, collection: Collection, items: Iterable[Item]) -> Mirrored:
        """Mark deleted what is gone, and find the rows of what is there."""
        rows = collection.rows()
        fresher = [row for row in rows if row.updated_at and row.updated_at >= self.since]
        wanted = {str(item[collection.key]): item for item in items}
        known = {key for row in fresher for key in [identify(row, collection)] if not is_newer(wanted.get(key), row)}
        staying = known | wanted.keys()
        gone = [row for row in rows if not row.deleted_at and identify(row, collection) not in staying]
        removed = mark_deleted(collection, gone)
        items = [item for key, item in wanted.items() if key not in known]
        table = Mirrored(collection, match(items, collection, rows), rows, removed)
        self.tables.append(table)
        return table

    def write(self, table: Mirrored) -> None:
        release_names(table)
        write_entries(table.entries)

    def report(self, remarks: list[str]) -> MirrorReport:
        found = count(entry for table in self.tables for entry in table.entries)
        removed = sum(table.removed for table in self.tables)
        return MirrorReport(found.created, found.changed, found.unchanged, removed, remarks)


def identify(row: Any, collection: Collection) -> str:
    return str(getattr(row, collection.key))


def is_newer(item: Item | None, row: Any) -> bool:
    """Return whether the cloud itself dates an object that was read after the present row that it belongs to.

    A notification that was delayed may have been written while newer contents were already being read.
    """
    read, recorded = (item or {}).get("cloud_updated_at"), getattr(row, "cloud_updated_at", None)
    return bool(read and recorded and not row.deleted_at and read > recorded)


def mark_deleted(collection: Collection, rows: list[Any]) -> int:
    now = timezone.now()
    for row in rows:
        row.deleted_at = now
    return int(collection.model.objects.filter(pk__in=[row.pk for row in rows]).soft_delete()) if rows else 0


def release_names(table: Mirrored) -> None:
    """Free the names of rows that are renamed, as two rows may swap their names."""
    column = UNIQUE.get(table.collection.model)
    renamed = [entry for entry in table.entries if column in entry.changed and not entry.is_new]
    if renamed:
        table.collection.model.objects.filter(pk__in=[entry.row.pk for entry in renamed]).soft_delete()
    for entry in renamed:
        entry.changed.add("deleted_at")


@transaction.atomic
def mirror(contents: CloudContents, since: datetime) -> MirrorReport:
    """Bring our tables in line with what a cloud held when its reading began."""
    work = Mirror(since)
    servers = mirror_compute(work, contents)
    if contents.storage is not None:
        mirror_storage(work, contents.storage, servers)
    return work.report(contents.remarks)


def mirror_compute(work: Mirror, contents: CloudContents) -> Mapping[str, Server]:
    """Write the compute part, and return the servers by UUID."""
    nodes = work.open(COMPUTE_NODES, contents.compute_nodes)
    work.write(nodes)
    hosts = nodes.by("hostname")
    servers = work.open(SERVERS, contents.servers)
    for entry in servers.entries:
        entry.link("node", hosts.get(entry.item["node"] or ""))
    work.write(servers)
    work.write(work.open(FLAVORS, contents.flavors))
    # The number identifies an aggregate; its row may have a generated UUID from before Nova's was read.
    uuids = {item["id"]: UUID(item["uuid"]) for item in contents.host_aggregates if item.get("uuid")}
    numbered = [{name: value for name, value in item.items() if name != "uuid"} for item in contents.host_aggregates]
    aggregates = work.open(HOST_AGGREGATES, numbered)
    for entry in aggregates.entries:
        entry.set("uuid", uuids.get(entry.item["id"], entry.row.uuid))
    work.write(aggregates)
    members = [
        (entry, [hosts[name] for name in entry.item["compute_nodes"] if name in hosts]) for entry in aggregates.entries
    ]
    write_pairs(members, HostAggregate.nodes.through, "hostaggregate", "computenode")
    return servers.by("uuid")


def mirror_storage(work: Mirror, storage: StorageContents, servers: Mapping[str, Server]) -> None:
    types = work.open(VOLUME_TYPES, storage.volume_types)
    work.write(types)
    nodes = work.open(STORAGE_NODES, storage.storage_nodes)
    work.write(nodes)
    kinds, hosts = types.by("name"), nodes.by("host")
    served = [
        (entry, [kinds[name] for name in entry.item["volume_types"] if name in kinds]) for entry in nodes.entries
    ]
    write_pairs(served, StorageNode.volume_types.through, "storagenode", "volumetype")
    pools = work.open(POOLS, [pool for pool in storage.pools if pool["storage_node"] in hosts])
    for entry in pools.entries:
        entry.link("storage_node", hosts[entry.item["storage_node"]])
    work.write(pools)
    names = pools.by("name")
    volumes = work.open(VOLUMES, storage.volumes)
    for entry in volumes.entries:
        entry.link("pool", names.get(entry.item["pool"] or ""))
        entry.link("volume_type", kinds.get(entry.item["volume_type"] or ""))
    work.write(volumes)
    mirror_attachments(work, storage, volumes.by("uuid"), servers)


def mirror_attachments(
    work: Mirror, storage: StorageContents, volumes: Mapping[str, Volume], servers: Mapping[str, Server]
) -> None:
    known = [item for item in storage.attachments if item["volume"] in volumes and item["server"] in servers]
    attachments = work.open(ATTACHMENTS, known)
    for entry in attachments.entries:
        entry.link("volume", volumes[entry.item["volume"]])
        entry.link("server", servers[entry.item["server"]])
    work.write(attachments)


@transaction.atomic
def record_server(item: Item) -> None:
    """Write a server as it was just read."""
    entry = find_row(SERVERS, item)
    entry.link("node", ComputeNode.objects.present().filter(hostname=item["node"]).first() if item["node"] else None)
    write_row(entry)


@transaction.atomic
def record_volume(item: Item) -> None:
    """Write a volume as it was just read; who it is attached to waits for the next reading of everything."""
    entry = find_row(VOLUMES, item)
    entry.link("pool", Pool.objects.present().filter(name=item["pool"]).first())
    entry.link("volume_type", VolumeType.objects.present().filter(name=item["volume_type"]).first())
    write_row(entry)


def record_node(host: str, **columns: Any) -> None:
    """Write columns of the compute node of a host, where we know it."""
    ComputeNode.objects.present().filter(hostname=host).update(**columns, updated_at=timezone.now())


def record_server_well(server: str) -> None:
    """Remove a person's mark from a server that was rebuilt or is reported as healthy."""
    Server.objects.filter(uuid=server).exclude(unhealthy_reason=None).update(unhealthy_reason=None)


def record_given_up(server: str) -> None:
    """Record that a server was given up while it waited for capacity."""
    Server.objects.filter(uuid=server).update(given_up_at=timezone.now())


def record_server_gone(server: str) -> None:
    Server.objects.filter(uuid=server).soft_delete()


def record_volume_gone(volume: str) -> None:
    Volume.objects.filter(uuid=volume).soft_delete()


def find_row(collection: Collection, item: Item) -> Entry:
    # Otherwise a reading, or the listener, might insert the same row at this moment.
    Synchronization.lock()
    rows = list(collection.model.objects.select_for_update(no_key=True).filter(uuid=item["uuid"]))
    return match([item], collection, rows)[0]


def write_row(entry: Entry) -> None:
    """Write what changed, with the time, by which a slower reading of everything sees that it knows less."""
    if entry.is_new:
        entry.row.updated_at = timezone.now()
    write_entries([entry])
