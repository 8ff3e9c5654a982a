"""Writing single objects from notifications of the cloud, unless the tables contain a newer state.

Notifications may arrive late, twice or out of order. These times decide, under the lock of `Synchronization.lock`,
which state is newer:

- ``Synchronization.succeeded_at``: the beginning of the last reading, which includes all earlier changes.
- ``reported_at`` of a row: the time of the newest notification that was written to it.
- ``cloud_updated_at`` of a server or volume: the cloud's time of the last change, from a reading or a notification.

``updated_at`` is set to the time of the notification, not of its arrival, so that readings that began later overwrite
the row, and readings that began earlier do not (`cluster.synchronization.mirroring`).

Each function returns whether it wrote the object.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from cluster.models import (
    ComputeNode,
    HostAggregate,
    Pool,
    Server,
    Synchronization,
    Volume,
    VolumeAttachment,
    VolumeType,
)
from cluster.synchronization.cloud_contents import Item
from cluster.synchronization.mirroring import ATTACHMENTS, COMPUTE_NODES, HOST_AGGREGATES, SERVERS, VOLUMES
from cluster.synchronization.rows import Collection, Entry, match_rows, write_entries


def is_after(reading: Synchronization, time: datetime) -> bool:
    return reading.succeeded_at is None or time >= reading.succeeded_at


def is_newest(row: Any, reading: Synchronization, time: datetime) -> bool:
    """Return whether a notification is newer than the last reading and the row, which may be None."""
    times = [row.reported_at, getattr(row, "cloud_updated_at", None)] if row else []
    return is_after(reading, time) and all(last_time is None or time >= last_time for last_time in times)


def lock_row(collection: Collection, key: Any) -> Any:
    """Lock and return the row with this key, even if it is marked as deleted, or None."""
    return collection.model.objects.select_for_update(no_key=True).filter(**{collection.key: key}).first()


def lock_node(host: str) -> ComputeNode | None:
    nodes = ComputeNode.objects.select_for_update(no_key=True)
    node: ComputeNode | None = nodes.filter(hostname=host, deleted_at=None).first()
    return node


def set_columns(collection: Collection, row: Any, item: Item, time: datetime) -> Entry:
    """Set the columns of the item on the row, or on a new one, without saving it."""
    entry = match_rows([item], collection, [row] if row else [])[0]
    entry.set("reported_at", time)
    return entry


def write(entry: Entry, time: datetime) -> None:
    changed_at = max(filter(None, [entry.row.updated_at, time]))
    entry.row.updated_at = changed_at
    write_entries([entry], changed_at)


def delete_row(row: Any, time: datetime) -> bool:
    """Mark a row as deleted at the current time, so that a reading in progress does not restore it."""
    rows = type(row).objects.filter(pk=row.pk)
    rows.update(reported_at=max(filter(None, [row.reported_at, time])))
    return bool(rows.soft_delete())


@transaction.atomic
def write_server(item: Item, time: datetime, is_restored: bool = False) -> bool:
    """Write a server; ``is_restored`` means that the notification restores a deleted one.

    A server that waits for capacity is ERROR in Nova, and stays PENDING here.
    """
    reading = Synchronization.lock()
    row: Server | None = lock_row(SERVERS, item["uuid"])
    if not is_newest(row, reading, time) or is_outdated(item, row) or (row and row.deleted_at and not is_restored):
        return False
    if row and row.state == Server.State.PENDING and item["state"] == Server.State.ERROR:
        item = {**item, "state": row.state}
    entry = set_columns(SERVERS, row, item, time)
    if entry.row.state not in {Server.State.ERROR, Server.State.PENDING}:
        entry.set("fault", None)
    entry.link("node", ComputeNode.objects.present().filter(hostname=item["node"]).first() if item["node"] else None)
    write(entry, time)
    return True


def is_outdated(item: Item, row: Any) -> bool:
    """Return whether a notification shows an older state of an object than the row.

    Nova sends some notifications with an outdated copy of a server.
    """
    updated_at = item.get("cloud_updated_at")
    return bool(row and row.cloud_updated_at and updated_at and updated_at < row.cloud_updated_at)


@transaction.atomic
def remove_server(uuid: str, time: datetime, is_permanent: bool = True) -> bool:
    """Mark a server as deleted. If ``is_permanent``, ignore later times of the row, due to different clocks."""
    reading = Synchronization.lock()
    row: Server | None = lock_row(SERVERS, uuid)
    if row is None or row.deleted_at or not is_after(reading, time):
        return False
    return (is_permanent or is_newest(row, reading, time)) and delete_row(row, time)


@transaction.atomic
def write_compute_service(host: str, columns: Mapping[str, Any], time: datetime) -> bool:
    """Write the state of a known host's compute service. The next reading adds new compute nodes."""
    reading = Synchronization.lock()
    row = lock_node(host)
    if row is None or not is_newest(row, reading, time):
        return False
    entry = Entry((COMPUTE_NODES.name, 0), {}, row, is_new=False)
    for name, value in {**columns, "reported_at": time}.items():
        entry.set(name, value)
    write(entry, time)
    return True


@transaction.atomic
def remove_compute_node(host: str, time: datetime) -> bool:
    reading = Synchronization.lock()
    row = lock_node(host)
    return row is not None and is_newest(row, reading, time) and delete_row(row, time)


@transaction.atomic
def write_aggregate(item: Item, time: datetime) -> bool:
    """Write a host aggregate with those of its compute nodes that are in the site's table."""
    reading = Synchronization.lock()
    row: HostAggregate | None = lock_row(HOST_AGGREGATES, item["id"])
    if not is_newest(row, reading, time) or (row and row.deleted_at):
        return False
    entry = set_columns(HOST_AGGREGATES, row, {name: value for name, value in item.items() if name != "uuid"}, time)
    entry.set("uuid", UUID(item["uuid"]))
    write(entry, time)
    entry.row.nodes.set(ComputeNode.objects.present().filter(hostname__in=item["compute_nodes"]))
    return True


@transaction.atomic
def remove_aggregate(number: int, time: datetime) -> bool:
    reading = Synchronization.lock()
    row = lock_row(HOST_AGGREGATES, number)
    return row is not None and not row.deleted_at and is_after(reading, time) and delete_row(row, time)


@transaction.atomic
def write_volume(item: Item, servers: Mapping[str, str] | None, time: datetime) -> bool:
    """Write a volume with its attachments.

    Args:
        item: the columns; ``volume_type`` is a UUID.
        servers: UUIDs of servers by those of the attachments; None keeps the attachments.
    """
    reading = Synchronization.lock()
    row: Volume | None = lock_row(VOLUMES, item["uuid"])
    if not is_newest(row, reading, time) or (row and row.deleted_at):
        return False
    entry = set_columns(VOLUMES, row, item, time)
    entry.link("pool", Pool.objects.present().filter(name=item["pool"]).first() if item["pool"] else None)
    kind = item["volume_type"]
    entry.link("volume_type", VolumeType.objects.present().filter(uuid=kind).first() if kind else None)
    write(entry, time)
    if servers is not None:
        write_attachments(entry.row, servers, time)
    return True


def write_attachments(volume: Volume, servers: Mapping[str, str], time: datetime) -> None:
    """Update the attachments of a volume to servers in the site's table."""
    rows = list(VolumeAttachment.objects.select_for_update(no_key=True).filter(volume=volume))
    remove_attachments(row for row in rows if str(row.uuid) not in servers)
    servers_by_uuid = {
        str(server_row.uuid): server_row for server_row in Server.objects.present().filter(uuid__in=servers.values())
    }
    items = [{"uuid": key, "server": server} for key, server in servers.items() if server in servers_by_uuid]
    entries = match_rows(items, ATTACHMENTS, rows)
    for entry in entries:
        entry.link("volume", volume)
        entry.link("server", servers_by_uuid[entry.item["server"]])
        if entry.is_new:
            entry.row.updated_at = time
    write_entries(entries, time)


def remove_attachments(rows: Iterable[VolumeAttachment]) -> None:
    VolumeAttachment.objects.filter(pk__in=[row.pk for row in rows]).soft_delete()


@transaction.atomic
def remove_volume(uuid: str, time: datetime) -> bool:
    reading = Synchronization.lock()
    row: Volume | None = lock_row(VOLUMES, uuid)
    if row is None or row.deleted_at or not is_after(reading, time):
        return False
    remove_attachments(VolumeAttachment.objects.filter(volume=row))
    return delete_row(row, time)
