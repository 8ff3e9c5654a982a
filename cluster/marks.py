"""What people say of the health of something, and which thing holds that."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from cluster.models import Node, Server, Stack, StackResource
from watcher_site.refusals import Invalid

Markable = Stack | StackResource | Server | Node


@dataclass(frozen=True)
class Mark:
    """What a person says of the health of something, and which thing holds that: for a server it may be another."""

    object_type: str
    object_id: UUID
    object_name: str
    unhealthy: bool
    reason: str | None


def find_mark(thing: Markable) -> Mark:
    """Return what is said of something now. Raises: `Invalid`, where it cannot be told which thing is meant."""
    holder: Any = find_holder(thing)
    reason = holder.unhealthy_reason if isinstance(holder, Server | Node) else reason_of(holder)
    name = "resource" if isinstance(holder, StackResource) else type(holder).__name__.lower()
    return Mark(name, holder.uuid, holder.name, reason is not None, reason)


def reason_of(part: Stack | StackResource) -> str | None:
    return part.status_reason if part.is_marked else None


def find_holder(thing: Markable) -> Markable:
    """Return what holds the mark of something: for what is in a stack, or in a cluster, the resource or the node."""
    if isinstance(thing, Stack):
        return thing.parent_resource or thing
    return (find_resource(thing) or find_node(thing) or thing) if isinstance(thing, Server) else thing


def find_resource(server: Server) -> StackResource | None:
    resources = StackResource.objects.present().filter(physical_id=str(server.uuid)).select_related("stack")
    few: list[StackResource] = list(resources[:2])
    if len(few) > 1:
        raise Invalid(f"Multiple resources were found with the physical ID ({server.uuid}).")
    return few[0] if few else None


def find_node(server: Server) -> Node | None:
    found: Node | None = Node.objects.present().filter(physical_id=server.uuid).first()
    return found
