"""The load-balancing part of a topology: pools, and which servers are in them."""

from collections.abc import Iterable, Mapping
from typing import Any

from cluster.json_lines import Misfit
from cluster.models import BalancingMember, BalancingPool, Server
from cluster.synchronization.rows import BATCH, Collection, Entry, find, match, write_entries

POOLS = Collection("balancing_pools", BalancingPool, "load-balancer pool", "name", frozenset({"members"}))
COLUMNS = ("port", "weight", "connections")


def load_balancing(document: Mapping[str, Any], servers: Mapping[Any, Server]) -> list[Entry]:
    """Bring the pools in line, with the servers by name and by UUID that may be in them.

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
