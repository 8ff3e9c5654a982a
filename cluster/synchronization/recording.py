"""Write a single object that was read from a cloud to our tables."""

from typing import Any

from django.db import transaction
from django.utils import timezone

from cluster.models import ComputeNode, Pool, Server, Volume, VolumeType
from cluster.synchronization.cloud_contents import Item
from cluster.synchronization.mirroring import SERVERS, VOLUMES
from cluster.synchronization.rows import Collection, Entry, match, write_entries


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
    rows = list(collection.model.objects.select_for_update(no_key=True).filter(uuid=item["uuid"]))
    return match([item], collection, rows)[0]


def write_row(entry: Entry) -> None:
    """Write what changed, with the time, by which a slower reading of everything sees that it knows less."""
    if entry.is_new:
        entry.row.updated_at = timezone.now()
    write_entries([entry])
