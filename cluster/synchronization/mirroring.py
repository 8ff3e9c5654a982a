"""Writing the contents of a cloud to the site's tables: atomically, and in few statements.

`record_server` and the functions below it write a single object that a driver has just read. For objects in
notifications, see `cluster.synchronization.notified_objects`.
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
from cluster.synchronization.rows import (
    Collection,
    Entry,
    count_entries,
    index_rows,
    match_rows,
    write_entries,
    write_pairs,
)

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
# The unique columns besides the key.
UNIQUE = {ComputeNode: "hostname", HostAggregate: "name", Flavor: "name", VolumeType: "name"}


@dataclass
class MirrorReport:
    """The numbers of rows that a reading created, changed, left unchanged and removed."""

    created: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    remarks: list[str] = field(default_factory=list)


@dataclass
class MirroredTable:
    """The rows of one table with the entries of a reading. Rows written after its beginning are not changed."""

    collection: Collection
    entries: list[Entry]
    rows: list[Any]
    removed: int

    def rows_by(self, column: str) -> dict[Any, Any]:
        """Return the rows that exist after the reading, by the text of a column."""
        return {str(key): row for key, row in index_rows(self.entries, self.rows, column).items()}


class Mirror:
    def __init__(self, since: datetime) -> None:
        self.since = since
        self.tables: list[MirroredTable] = []

    def match_table(self, collection: Collection, items: Iterable[Item]) -> MirroredTable:
        """Mark rows without an item as deleted, and match the items with the other rows."""
        rows = collection.rows()
        by_key = {str(item[collection.key]): item for item in items}
        fresh_keys = set()
        for row in rows:
            key = identify(row, collection)
            is_fresher = row.updated_at and row.updated_at >= self.since
            if is_fresher and not is_newer(by_key.get(key), row):
                fresh_keys.add(key)
        staying = fresh_keys | by_key.keys()
        gone = [row for row in rows if not row.deleted_at and identify(row, collection) not in staying]
        removed = mark_deleted(collection, gone)
        items = [item for key, item in by_key.items() if key not in fresh_keys]
        table = MirroredTable(collection, match_rows(items, collection, rows), rows, removed)
        self.tables.append(table)
        return table

    def write(self, table: MirroredTable) -> None:
        release_names(table)
        write_entries(table.entries)

    def report(self, remarks: list[str]) -> MirrorReport:
        counts = count_entries(entry for table in self.tables for entry in table.entries)
        removed = sum(table.removed for table in self.tables)
        return MirrorReport(counts.created, counts.changed, counts.unchanged, removed, remarks)


def identify(row: Any, collection: Collection) -> str:
    return str(getattr(row, collection.key))


def is_newer(item: Item | None, row: Any) -> bool:
    """Return whether an item is newer than its row, according to the cloud's time of the last change.

    During a reading, a delayed notification may write an older state.
    """
    read, recorded = (item or {}).get("cloud_updated_at"), getattr(row, "cloud_updated_at", None)
    return bool(read and recorded and not row.deleted_at and read > recorded)


def mark_deleted(collection: Collection, rows: list[Any]) -> int:
    now = timezone.now()
    for row in rows:
        row.deleted_at = now
    return int(collection.model.objects.filter(pk__in=[row.pk for row in rows]).soft_delete()) if rows else 0


def release_names(table: MirroredTable) -> None:
    """Release the names of renamed rows, because two rows may swap their names."""
    column = UNIQUE.get(table.collection.model)
    renamed = [entry for entry in table.entries if column in entry.changed and not entry.is_new]
    if renamed:
        table.collection.model.objects.filter(pk__in=[entry.row.pk for entry in renamed]).soft_delete()
    for entry in renamed:
        entry.changed.add("deleted_at")


@transaction.atomic
def mirror(contents: CloudContents, since: datetime) -> MirrorReport:
    """Update the site's tables with the contents of a cloud that were read from a given time on."""
    mirroring = Mirror(since)
    servers = mirror_compute(mirroring, contents)
    if contents.storage is not None:
        mirror_storage(mirroring, contents.storage, servers)
    return mirroring.report(contents.remarks)


def mirror_compute(mirroring: Mirror, contents: CloudContents) -> Mapping[str, Server]:
    """Write all but the storage, and return the servers by UUID."""
    nodes = mirroring.match_table(COMPUTE_NODES, contents.compute_nodes)
    mirroring.write(nodes)
    hosts = nodes.rows_by("hostname")
    servers = mirroring.match_table(SERVERS, contents.servers)
    for entry in servers.entries:
        entry.link("node", hosts.get(entry.item["node"] or ""))
    mirroring.write(servers)
    mirroring.write(mirroring.match_table(FLAVORS, contents.flavors))
    # The number identifies an aggregate; its row may have a generated UUID from before Nova's was read.
    uuids = {item["id"]: UUID(item["uuid"]) for item in contents.host_aggregates if item.get("uuid")}
    numbered = [{name: value for name, value in item.items() if name != "uuid"} for item in contents.host_aggregates]
    aggregates = mirroring.match_table(HOST_AGGREGATES, numbered)
    for entry in aggregates.entries:
        entry.set("uuid", uuids.get(entry.item["id"], entry.row.uuid))
    mirroring.write(aggregates)
    members = [
        (entry, [hosts[name] for name in entry.item["compute_nodes"] if name in hosts]) for entry in aggregates.entries
    ]
    write_pairs(members, HostAggregate.nodes.through, "hostaggregate", "computenode")
    return servers.rows_by("uuid")


def mirror_storage(mirroring: Mirror, storage: StorageContents, servers: Mapping[str, Server]) -> None:
    types = mirroring.match_table(VOLUME_TYPES, storage.volume_types)
    mirroring.write(types)
    nodes = mirroring.match_table(STORAGE_NODES, storage.storage_nodes)
    mirroring.write(nodes)
    kinds, hosts = types.rows_by("name"), nodes.rows_by("host")
    served = [
        (entry, [kinds[name] for name in entry.item["volume_types"] if name in kinds]) for entry in nodes.entries
    ]
    write_pairs(served, StorageNode.volume_types.through, "storagenode", "volumetype")
    pools = mirroring.match_table(POOLS, [pool for pool in storage.pools if pool["storage_node"] in hosts])
    for entry in pools.entries:
        entry.link("storage_node", hosts[entry.item["storage_node"]])
    mirroring.write(pools)
    names = pools.rows_by("name")
    volumes = mirroring.match_table(VOLUMES, storage.volumes)
    for entry in volumes.entries:
        entry.link("pool", names.get(entry.item["pool"] or ""))
        entry.link("volume_type", kinds.get(entry.item["volume_type"] or ""))
    mirroring.write(volumes)
    mirror_attachments(mirroring, storage, volumes.rows_by("uuid"), servers)


def mirror_attachments(
    mirroring: Mirror, storage: StorageContents, volumes: Mapping[str, Volume], servers: Mapping[str, Server]
) -> None:
    items = [item for item in storage.attachments if item["volume"] in volumes and item["server"] in servers]
    attachments = mirroring.match_table(ATTACHMENTS, items)
    for entry in attachments.entries:
        entry.link("volume", volumes[entry.item["volume"]])
        entry.link("server", servers[entry.item["server"]])
    mirroring.write(attachments)


@transaction.atomic
def record_server(item: Item) -> None:
    """Write a server that was just read."""
    entry = find_row(SERVERS, item)
    entry.link("node", ComputeNode.objects.present().filter(hostname=item["node"]).first() if item["node"] else None)
    write_row(entry)


@transaction.atomic
def record_volume(item: Item) -> None:
    """Write a volume that was just read, without its attachments, which the next complete reading writes."""
    entry = find_row(VOLUMES, item)
    entry.link("pool", Pool.objects.present().filter(name=item["pool"]).first())
    entry.link("volume_type", VolumeType.objects.present().filter(name=item["volume_type"]).first())
    write_row(entry)


def record_node(host: str, **columns: Any) -> None:
    """Write columns of the compute node of a host, if it is in the site's table."""
    ComputeNode.objects.present().filter(hostname=host).update(**columns, updated_at=timezone.now())


def record_server_well(server: str) -> None:
    """Remove a user's mark from a server that was rebuilt or is reported as healthy."""
    Server.objects.filter(uuid=server).exclude(unhealthy_reason=None).update(unhealthy_reason=None)


def record_given_up(server: str) -> None:
    """Record that a user ended a server's wait for capacity."""
    Server.objects.filter(uuid=server).update(given_up_at=timezone.now())


def record_server_gone(server: str) -> None:
    Server.objects.filter(uuid=server).soft_delete()


def record_volume_gone(volume: str) -> None:
    Volume.objects.filter(uuid=volume).soft_delete()


def find_row(collection: Collection, item: Item) -> Entry:
    # The lock keeps readings and the listener from inserting the same row.
    Synchronization.lock()
    rows = list(collection.model.objects.select_for_update(no_key=True).filter(uuid=item["uuid"]))
    return match_rows([item], collection, rows)[0]


def write_row(entry: Entry) -> None:
    """Write the changes with the current time, so that an older reading does not overwrite them."""
    if entry.is_new:
        entry.row.updated_at = timezone.now()
    write_entries([entry])
