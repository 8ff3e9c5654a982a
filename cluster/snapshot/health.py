"""Objects that people marked unhealthy, as strategies see them: read in four queries, whatever their number."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from cluster.models import Node, Server, Stack, StackResource
from cluster.models.stacks import FAILED


@dataclass(frozen=True)
class UnhealthyPart:
    """A resource of a stack, a server or a node that is said to be unhealthy, or that failed.

    ``within`` are the UUIDs of the stacks and of the resources that it is in. ``depends_on`` are those of resources
    that come before it, or before what it is in.
    """

    uuid: UUID
    name: str
    status: str
    within: tuple[UUID, ...] = ()
    depends_on: tuple[UUID, ...] = ()
    is_occupied: bool = False
    """Whether something is to be done to it, or to what it is in."""


@dataclass
class StackHealth:
    """A root stack, whether it was marked itself, and its unhealthy parts.

    The parts within a marked resource are left out, as they are replaced with it. ``broken`` are servers that failed
    otherwise.
    """

    uuid: UUID
    name: str
    status: str
    is_marked: bool = False
    marked: list[UnhealthyPart] = field(default_factory=list)
    broken: list[UnhealthyPart] = field(default_factory=list)
    is_occupied: bool = False


@dataclass
class HealthSnapshot:
    """All stacks in the order of their names; the servers that belong to none, and the nodes, that were marked."""

    stacks: Sequence[StackHealth] = ()
    servers: Sequence[UnhealthyPart] = ()
    nodes: Sequence[UnhealthyPart] = ()


def load_health(busy: frozenset[str] = frozenset()) -> HealthSnapshot:
    """Read what is marked.

    Args:
        busy: the UUIDs of what something is to be done to.
    """
    stacks = list(Stack.objects.present().defer("template").order_by("name", "pk"))
    parts = StackResource.objects.present().filter(status__in=FAILED) | StackResource.objects.present().filter(
        type__in=StackResource.NESTING
    )
    trees = Trees(stacks, list(parts.defer("properties").order_by("pk")), busy)
    return HealthSnapshot(trees.read(), load_servers(busy), load_unhealthy_nodes(busy))


def load_servers(busy: frozenset[str]) -> list[UnhealthyPart]:
    marked = Server.objects.present().exclude(unhealthy_reason=None).exclude(node=None).order_by("name", "pk")
    return [lone(*row, busy=busy) for row in marked.values_list("uuid", "name", "state")]


def load_unhealthy_nodes(busy: frozenset[str]) -> list[UnhealthyPart]:
    """Read the nodes that were marked; one of a cluster is as busy as that is."""
    marked = Node.objects.present().exclude(unhealthy_reason=None).order_by("name", "pk")
    rows = marked.values_list("uuid", "name", "status", "cluster__uuid")
    return [
        lone(uuid, name, status, *([cluster] if cluster else []), busy=busy) for uuid, name, status, cluster in rows
    ]


def lone(uuid: UUID, name: str, status: str, *within: UUID, busy: frozenset[str]) -> UnhealthyPart:
    return UnhealthyPart(uuid, name, status, within, is_occupied=is_among(busy, uuid, *within))


def is_among(busy: frozenset[str], *uuids: UUID) -> bool:
    return any(str(uuid) in busy for uuid in uuids)


class Trees:
    """Puts what is not well under the root stack that it is in."""

    def __init__(self, stacks: Sequence[Stack], parts: Sequence[StackResource], busy: frozenset[str]) -> None:
        self.busy = busy
        self.stacks = {stack.pk: stack for stack in stacks}
        self.parts = {part.pk: part for part in parts}
        self.by_name = {(part.stack_id, part.name): part.uuid for part in parts}

    def read(self) -> list[StackHealth]:
        found = {
            stack.pk: StackHealth(
                stack.uuid, stack.name, stack.status, stack.is_marked, is_occupied=is_among(self.busy, stack.uuid)
            )
            for stack in self.stacks.values()
            if stack.root_id is None
        }
        for part in self.parts.values():
            stack = self.stacks.get(part.stack_id)
            if stack is None or self.goes_with_another(part):
                continue
            health = found[stack.root_key]
            if part.is_marked:
                health.marked.append(self.tell(part))
            elif part.is_failed and not part.is_nesting:
                health.broken.append(self.tell(part))
        return list(found.values())

    def above(self, part: StackResource) -> Iterator[Stack | StackResource]:
        """Give what a resource is in, from the inside to the root."""
        stack: Stack | None = self.stacks.get(part.stack_id)
        while stack is not None:
            yield stack
            if stack.parent_resource_id is None or (holder := self.parts.get(stack.parent_resource_id)) is None:
                return
            yield holder
            stack = self.stacks.get(holder.stack_id)

    def goes_with_another(self, part: StackResource) -> bool:
        """Return whether a part is replaced with its holder, which was marked or is no longer part of a stack."""
        above = list(self.above(part))
        held = zip(above[::2], above[1::2], strict=False)
        is_left = any(holder.physical_id not in (None, str(stack.uuid)) for stack, holder in held)  # type: ignore[union-attr]
        return is_left or any(one.is_marked for one in above)

    def tell(self, part: StackResource) -> UnhealthyPart:
        within = tuple(one.uuid for one in self.above(part))
        chain = [part, *(one for one in self.above(part) if isinstance(one, StackResource))]
        before = [self.by_name.get((one.stack_id, name)) for one in chain for name in one.depends_on]
        return UnhealthyPart(
            part.uuid,
            part.name,
            part.status,
            within,
            tuple(uuid for uuid in before if uuid is not None),
            is_occupied=is_among(self.busy, part.uuid, *within),
        )
