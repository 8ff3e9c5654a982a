"""Find records by the names and identifiers that people use, and save records whose names are unique."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import QuerySet

from cluster.models import ComputeNode, Server, Volume
from watcher_site import history
from watcher_site.database.uniqueness import refuse_taken
from watcher_site.refusals import Conflict, Invalid

# A policy, a profile, an exclusion.
Named = TypeVar("Named", bound=Any)


def only_one(records: Any, identifier: str) -> QuerySet[Any]:
    """Return the queryset of the one record of this UUID or name, or whose UUID begins so; several may have one name.

    Raises:
        Invalid: several records have the name, or a UUID that begins so.
    """
    named: QuerySet[Any] = records.named(identifier)
    if is_uuid(identifier):
        return named
    for candidates in (named, records.beginning_with(identifier)):
        keys = list(candidates.order_by().values_list("pk", flat=True)[:2])
        if len(keys) > 1:
            raise several_found(identifier)
        if keys:
            found: QuerySet[Any] = records.filter(pk=keys[0])
            return found
    nothing: QuerySet[Any] = records.none()
    return nothing


def several_found(identifier: str) -> Invalid:
    return Invalid(f"Multiple results found matching the query criteria '{identifier}'. Please be more specific.")


def is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def find_zone(target: str | None) -> str | None:
    """Return the zone of the object with this UUID, or of the node with this host name, if there is one."""
    try:
        uuid = UUID(target or "")
    except ValueError:
        return ComputeNode.objects.present().filter(hostname=target).values_list("zone", flat=True).first()
    servers = Server.objects.present().filter(uuid=uuid).order_by().values_list("node__zone", flat=True)
    nodes = ComputeNode.objects.present().filter(uuid=uuid).order_by().values_list("zone", flat=True)
    volumes = Volume.objects.present().filter(uuid=uuid).order_by().values_list("pool__storage_node__zone", flat=True)
    return next(iter(servers.union(nodes, volumes)), None)


def save(record: Named, fields: Sequence[str] | None = None, details: Mapping[str, Any] | None = None) -> None:
    """Save it as a new row, or just some fields of it. The database decides whose a name is.

    Args:
        details: what history tells of it.

    Raises:
        Conflict: another of its kind has the name.
    """
    with refuse_taken(type(record), "name", taken(record)):
        record.save() if fields is None else record.save_changes(fields)
        verb = "create" if fields is None else "update"
        history.record(f"{record._meta.model_name}.{verb}", record, details=details)


def taken(record: Named) -> Conflict:
    """Return the refusal of a name that another of its kind has."""
    return Conflict(f"name: another {record._meta.verbose_name} is called {record.name}.")
