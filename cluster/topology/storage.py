"""The storage part of a topology: volume types, storage nodes, pools and volumes."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from cluster.json_lines import Misfit
from cluster.models import Pool, Server, StorageNode, Volume, VolumeAttachment, VolumeType
from cluster.models.storage import account
from cluster.synchronization.rows import Collection, Entry, find, match, present, write_entries, write_pairs

VOLUME_TYPES = Collection("volume_types", VolumeType, "volume type", "name")
STORAGE_NODES = Collection("storage_nodes", StorageNode, "storage node", "host", frozenset({"volume_types"}))
POOLS = Collection("pools", Pool, "pool", "name")
VOLUMES = Collection("volumes", Volume, "volume", "name", frozenset({"pool", "volume_type", "attachments"}))
COLLECTIONS = (VOLUME_TYPES, STORAGE_NODES, POOLS, VOLUMES)

Members = list[tuple[Entry, list[Any]]]


def load_storage_topology(document: Mapping[str, Any], servers: Mapping[Any, Server]) -> list[Entry]:
    """Bring the storage tables in line, with the servers by name and by UUID that volumes may be attached to.

    Raises:
        Misfit: it makes no sense beside what stands in the tables.
    """
    if not any(document.get(collection.name) for collection in COLLECTIONS):
        return []
    # Volumes before pools, as the embedded cloud locks them.
    rows = {collection.name: collection.rows() for collection in reversed(COLLECTIONS)}
    types, nodes, pools, volumes = (match(document.get(c.name, []), c, rows[c.name]) for c in COLLECTIONS)
    type_names = present(types, rows["volume_types"], "name")
    served = name_types(nodes, type_names)
    place_pools(pools, present(nodes, rows["storage_nodes"], "host"))
    place_volumes(volumes, present(pools, rows["pools"], "name"), type_names)
    attached = attach(volumes, servers)
    check_pool_capacity(pools, volumes, rows["volumes"], rows["pools"])
    for entries in (types, nodes, pools, volumes):
        write_entries(entries)
    write_pairs(served, StorageNode.volume_types.through, "storagenode", "volumetype")
    write_pairs(attached, VolumeAttachment, "volume", "server")
    account([*rows["pools"], *(entry.row for entry in pools if entry.is_new)])
    return [*types, *nodes, *pools, *volumes]


def name_types(nodes: Iterable[Entry], types: Mapping[str, VolumeType]) -> Members:
    return [
        (entry, find_all(types, entry, "volume_types", "volume type"))
        for entry in nodes
        if "volume_types" in entry.item
    ]


def find_all(names: Mapping[Any, Any], entry: Entry, attribute: str, kind: str) -> list[Any]:
    wanted = enumerate(entry.item[attribute])
    return [find(names, name, kind, [*entry.path, attribute, position]) for position, name in wanted]


def place_pools(pools: Iterable[Entry], nodes: Mapping[str, StorageNode]) -> None:
    """Link each pool to the storage node that its name begins with."""
    for entry in pools:
        host = entry.row.name.partition("#")[0]
        entry.link("storage_node", find(nodes, host, "storage node", [*entry.path, "name"]))


def place_volumes(volumes: Iterable[Entry], pools: Mapping[str, Pool], types: Mapping[str, VolumeType]) -> None:
    for entry in volumes:
        if "pool" in entry.item:
            entry.link("pool", find(pools, entry.item["pool"], "pool", [*entry.path, "pool"]))
        if "volume_type" in entry.item:
            found = find(types, entry.item["volume_type"], "volume type", [*entry.path, "volume_type"])
            entry.link("volume_type", found)
        if entry.row.migration_status and entry.changed & {"pool", "volume_type", "size"}:
            raise Misfit([*entry.path], f"{entry.row.name} is being moved.")


def attach(volumes: Iterable[Entry], servers: Mapping[Any, Server]) -> Members:
    """Return the servers that each volume shall be attached to, and set its status where the topology has none."""
    found = []
    for entry in volumes:
        if "attachments" not in entry.item:
            continue
        members = find_all(servers, entry, "attachments", "server")
        if len(members) > 1 and not entry.row.multiattach:
            raise Misfit([*entry.path, "attachments"], "only a multiattach volume is attached to several servers.")
        if "status" not in entry.item and entry.row.status in {Volume.Status.AVAILABLE, Volume.Status.IN_USE}:
            entry.set("status", Volume.Status.IN_USE if members else Volume.Status.AVAILABLE)
        found.append((entry, members))
    return found


def check_pool_capacity(
    pools: Iterable[Entry], volumes: Iterable[Entry], existing: Iterable[Volume], rows: Iterable[Pool]
) -> None:
    """Raise `Misfit` where the topology puts more into a pool than it may promise. The rest is not judged."""
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
    if used > pool.promisable_capacity_gb:
        raise Misfit(
            path, f"{pool.name} has room for {pool.promisable_capacity_gb} in all, and its volumes take {used}."
        )
