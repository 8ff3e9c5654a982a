"""Users' marks on the health of objects: reading them, and finding the rows that store them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from cluster.models import Node, Server, Stack, StackResource, StackStatus
from watcher_site.refusals import Invalid

Markable = Stack | StackResource | Server | Node


@dataclass(frozen=True)
class Mark:
    """A user's mark on the health of an object. The mark of a server may be stored by its resource or node."""

    object_type: str
    object_id: UUID
    object_name: str
    unhealthy: bool
    reason: str | None
    stack: Stack | None = None
    """The stack of a resource."""


def find_mark(target: Markable) -> Mark:
    """Return the current mark of an object. Raises: `Invalid` if the object cannot be identified."""
    record: Any = find_holder(target)
    reason = record.unhealthy_reason if isinstance(record, Server | Node) else read_mark_reason(record)
    name = "resource" if isinstance(record, StackResource) else type(record).__name__.lower()
    stack = record.stack if isinstance(record, StackResource) else None
    return Mark(name, record.uuid, record.name, reason is not None, reason, stack)


def mark_reasons_of(servers: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the reasons of the marks of servers by UUID, as `find_mark`: two queries.

    If several resources refer to a server, a marked one takes precedence.

    Args:
        servers: the reasons stored by the servers themselves, by UUID.
    """
    nodes = Node.objects.present().filter(physical_id__in=[UUID(server) for server in servers])
    reasons = dict(servers)
    reasons.update((str(node), reason) for node, reason in nodes.values_list("physical_id", "unhealthy_reason"))
    resources = StackResource.objects.present().filter(physical_id__in=list(servers))
    rows = list(resources.values_list("physical_id", "status", "status_reason"))
    reasons.update((str(server), None) for server, _, _ in rows)
    reasons.update((str(server), reason) for server, status, reason in rows if status == StackStatus.CHECK_FAILED)
    return reasons


def read_mark_reason(part: Stack | StackResource) -> str | None:
    return part.status_reason if part.is_marked else None


def find_holder(target: Markable) -> Markable:
    """Return the row that stores the mark: for a server in a stack or a cluster, its resource or node."""
    if isinstance(target, Stack):
        return target.parent_resource or target
    if isinstance(target, Server):
        return find_resource_of_server(target) or find_node_of_server(target) or target
    return target


def find_resource_of_server(server: Server) -> StackResource | None:
    resources = StackResource.objects.present().filter(physical_id=str(server.uuid)).select_related("stack__root")
    matches: list[StackResource] = list(resources[:2])
    if len(matches) > 1:
        raise Invalid(f"Multiple resources were found with the physical ID ({server.uuid}).")
    return matches[0] if matches else None


def find_node_of_server(server: Server) -> Node | None:
    found: Node | None = Node.objects.present().filter(physical_id=server.uuid).first()
    return found
