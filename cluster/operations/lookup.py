"""The lookup of the cluster or node that a path names, and of the availability zone of an action's target."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from cluster.models import ComputeNode, Server, Volume
from watcher_site.refusals import Invalid


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
            raise Invalid(
                f"Multiple results found matching the query criteria '{identifier}'. Please be more specific."
            )
        if keys:
            found: QuerySet[Any] = records.filter(pk=keys[0])
            return found
    nothing: QuerySet[Any] = records.none()
    return nothing


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
