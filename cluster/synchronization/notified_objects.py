"""Write single objects as notifications of the cloud describe them, unless something newer is already known.

A notification may come late, twice or out of order. These times decide what is newer, each under the lock that also
orders the writes of whole readings (`Synchronization.lock`):

- ``Synchronization.succeeded_at``: when the reading began that the tables show. It saw all that was notified before.
- ``reported_at`` of a row: the time of the newest notification that was written to it.
- ``cloud_updated_at`` of a server or volume: when the cloud changed it, according to a reading or a notification.

In the other direction, ``updated_at`` is set to the time of the notification, not of its arrival: a reading that began
later replaces what it says, and one that began earlier keeps it (`cluster.synchronization.mirroring`).

Each function returns whether it wrote anything.
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
from cluster.synchronization.rows import Collection, Entry, match, write_entries


def is_after(reading: Synchronization, time: datetime) -> bool:
    return reading.succeeded_at is None or time >= reading.succeeded_at


def is_news(row: Any, reading: Synchronization, time: datetime) -> bool:
    """Return whether neither the last reading nor the row, if there is one, is newer than a notification."""
    times = [row.reported_at, getattr(row, "cloud_updated_at", None)] if row else []
    return is_after(reading, time) and all(known is None or time >= known for known in times)


def lock_row(collection: Collection, key: Any) -> Any:
    """Lock and return the row with this UUID or number, also a deleted one, or None."""
    return collection.model.objects.select_for_update(no_key=True).filter(**{collection.key: key}).first()


def lock_node(host: str) -> ComputeNode | None:
    nodes = ComputeNode.objects.select_for_update(no_key=True)
    found: ComputeNode | None = nodes.filter(hostname=host, deleted_at=None).first()
    return found


def fill(collection: Collection, row: Any, item: Item, time: datetime) -> Entry:
    """Set the columns that the item names, in memory, on the row or on a new one."""
    entry = match([item], collection, [row] if row else [])[0]
    entry.set("reported_at", time)
    return entry


def write(entry: Entry, time: datetime) -> None:
    changed_at = max(filter(None, [entry.row.updated_at, time]))
    entry.row.updated_at = changed_at
    write_entries([entry], changed_at)


def mark_gone(row: Any, time: datetime) -> bool:
    """Mark a row deleted now: even a reading that has just seen the object does not bring it back."""
    rows = type(row).objects.filter(pk=row.pk)
    rows.update(reported_at=max(filter(None, [row.reported_at, time])))
    return bool(rows.soft_delete())


@transaction.atomic
def write_server(item: Item, time: datetime, revives: bool = False) -> bool:
    """Write a server; ``revives`` means that the notification brings a deleted one back.

    A server that waits for capacity is in ERROR in Nova, and stays PENDING here.
    """
    reading = Synchronization.lock()
    row: Server | None = lock_row(SERVERS, item["uuid"])
    if not is_news(row, reading, time) or is_outdated(item, row) or (row and row.deleted_at and not revives):
        return False
    if row and row.state == Server.State.PENDING and item["state"] == Server.State.ERROR:
        item = {**item, "state": row.state}
    entry = fill(SERVERS, row, item, time)
    if entry.row.state not in {Server.State.ERROR, Server.State.PENDING}:
        entry.set("fault", None)
    entry.link("node", ComputeNode.objects.present().filter(hostname=item["node"]).first() if item["node"] else None)
    write(entry, time)
    return True


def is_outdated(item: Item, row: Any) -> bool:
    """Return whether the cloud changed the object after the state that a notification shows.

    Nova sends some from a copy that it read earlier.
    """
    shown = item.get("cloud_updated_at")
    return bool(row and row.cloud_updated_at and shown and shown < row.cloud_updated_at)


@transaction.atomic
def remove_server(uuid: str, time: datetime, for_good: bool = True) -> bool:
    """Mark a server deleted. If ``for_good``, later times of the row are those of clocks that differ."""
    reading = Synchronization.lock()
    row: Server | None = lock_row(SERVERS, uuid)
    if row is None or row.deleted_at or not is_after(reading, time):
        return False
    return (for_good or is_news(row, reading, time)) and mark_gone(row, time)


@transaction.atomic
def write_compute_service(host: str, columns: Mapping[str, Any], time: datetime) -> bool:
    """Write the state of the compute service of a known host; a new compute node comes with the next reading."""
    reading = Synchronization.lock()
    row = lock_node(host)
    if row is None or not is_news(row, reading, time):
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
    return row is not None and is_news(row, reading, time) and mark_gone(row, time)


@transaction.atomic
def write_aggregate(item: Item, time: datetime) -> bool:
    """Write a host aggregate with the known compute nodes of those that it names."""
    reading = Synchronization.lock()
    row: HostAggregate | None = lock_row(HOST_AGGREGATES, item["id"])
    if not is_news(row, reading, time) or (row and row.deleted_at):
        return False
    entry = fill(HOST_AGGREGATES, row, {name: value for name, value in item.items() if name != "uuid"}, time)
    entry.set("uuid", UUID(item["uuid"]))
    write(entry, time)
    entry.row.nodes.set(ComputeNode.objects.present().filter(hostname__in=item["compute_nodes"]))
    return True


@transaction.atomic
def remove_aggregate(number: int, time: datetime) -> bool:
    reading = Synchronization.lock()
    row = lock_row(HOST_AGGREGATES, number)
    return row is not None and not row.deleted_at and is_after(reading, time) and mark_gone(row, time)


@transaction.atomic
def write_volume(item: Item, servers: Mapping[str, str] | None, time: datetime) -> bool:
    """Write a volume with its attachments.

    Args:
        item: the volume; its ``volume_type`` is a UUID.
        servers: by the UUID of an attachment, that of the server; None keeps the attachments.
    """
    reading = Synchronization.lock()
    row: Volume | None = lock_row(VOLUMES, item["uuid"])
    if not is_news(row, reading, time) or (row and row.deleted_at):
        return False
    entry = fill(VOLUMES, row, item, time)
    entry.link("pool", Pool.objects.present().filter(name=item["pool"]).first() if item["pool"] else None)
    kind = item["volume_type"]
    entry.link("volume_type", VolumeType.objects.present().filter(uuid=kind).first() if kind else None)
    write(entry, time)
    if servers is not None:
        write_attachments(entry.row, servers, time)
    return True


def write_attachments(volume: Volume, servers: Mapping[str, str], time: datetime) -> None:
    """Bring the attachments of a volume to known servers in line."""
    rows = list(VolumeAttachment.objects.select_for_update(no_key=True).filter(volume=volume))
    remove_attachments(row for row in rows if str(row.uuid) not in servers)
    known = {str(one.uuid): one for one in Server.objects.present().filter(uuid__in=servers.values())}
    items = [{"uuid": key, "server": server} for key, server in servers.items() if server in known]
    entries = match(items, ATTACHMENTS, rows)
    for entry in entries:
        entry.link("volume", volume)
        entry.link("server", known[entry.item["server"]])
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
    return mark_gone(row, time)
