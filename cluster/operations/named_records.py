"""Finding records by name or identifier, and saving records with unique names."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import QuerySet

from cluster import messages
from cluster.models import ComputeNode, Server, Volume
from watcher_site import history
from watcher_site.database.uniqueness import refuse_taken
from watcher_site.refusals import Conflict, Invalid

# A policy, a profile, an exclusion.
Named = TypeVar("Named", bound=Any)


def find_unique(records: Any, identifier: str) -> QuerySet[Any]:
    """Return the queryset of the record with this UUID, name or beginning of a UUID, which may be empty.

    Raises:
        Invalid: several records match.
    """
    matches: QuerySet[Any] = records.named(identifier)
    if is_uuid(identifier):
        return matches
    for candidates in (matches, records.beginning_with(identifier)):
        keys = list(candidates.order_by().values_list("pk", flat=True)[:2])
        if len(keys) > 1:
            raise ambiguous_identifier(identifier)
        if keys:
            record: QuerySet[Any] = records.filter(pk=keys[0])
            return record
    nothing: QuerySet[Any] = records.none()
    return nothing


def ambiguous_identifier(identifier: str) -> Invalid:
    return Invalid(messages.MULTIPLE_RESULTS.fill(name=identifier))


def is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def find_zone(target: str | None) -> str | None:
    """Return the zone of the object with this UUID, or of the compute node with this host name, or None."""
    try:
        uuid = UUID(target or "")
    except ValueError:
        return ComputeNode.objects.present().filter(hostname=target).values_list("zone", flat=True).first()
    servers = Server.objects.present().filter(uuid=uuid).order_by().values_list("node__zone", flat=True)
    nodes = ComputeNode.objects.present().filter(uuid=uuid).order_by().values_list("zone", flat=True)
    volumes = Volume.objects.present().filter(uuid=uuid).order_by().values_list("pool__storage_node__zone", flat=True)
    return next(iter(servers.union(nodes, volumes)), None)


def save(record: Named, fields: Sequence[str] | None = None, details: Mapping[str, Any] | None = None) -> None:
    """Save a new record, or some fields of an existing one. The database decides concurrent uses of a name.

    Args:
        details: the details of the history event.

    Raises:
        Conflict: another record of the model has the name.
    """
    with refuse_taken(type(record), "name", refuse_name(record)):
        record.save() if fields is None else record.save_changes(fields)
        verb = "create" if fields is None else "update"
        history.record(f"{record._meta.model_name}.{verb}", record, details=details)


def refuse_name(record: Named) -> Conflict:
    """Return the refusal of a name that another record has."""
    return Conflict(messages.RECORD_NAME_TAKEN.fill(kind=record._meta.verbose_name, name=record.name))
