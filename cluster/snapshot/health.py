"""The snapshot of objects that users marked unhealthy, loaded in four queries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from cluster.models import Node, Server, Stack, StackResource
from cluster.models.stacks import FAILED


@dataclass(frozen=True)
class UnhealthyPart:
    """A resource of a stack, a server or a node that was marked unhealthy, or that failed.

    ``within`` are the UUIDs of the stacks and resources that contain it. ``depends_on`` are the UUIDs of resources on
    which it, or a resource that contains it, depends.
    """

    uuid: UUID
    name: str
    status: str
    within: tuple[UUID, ...] = ()
    depends_on: tuple[UUID, ...] = ()
    is_occupied: bool = False
    """Whether an unfinished action concerns it or an object that contains it."""


@dataclass
class StackHealth:
    """A root stack, whether it was marked itself, and its unhealthy parts.

    Parts within a marked resource are omitted, because they are replaced with it. ``broken`` are servers that failed
    without a mark.
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
    """All stacks by name, the marked servers outside of stacks, and the marked nodes."""

    stacks: Sequence[StackHealth] = ()
    servers: Sequence[UnhealthyPart] = ()
    nodes: Sequence[UnhealthyPart] = ()


def load_health(busy: frozenset[str] = frozenset()) -> HealthSnapshot:
    """Load the unhealthy objects.

    Args:
        busy: the UUIDs of the objects of unfinished actions.
    """
    stacks = list(Stack.objects.present().defer("template").order_by("name", "pk"))
    parts = StackResource.objects.present().filter(status__in=FAILED) | StackResource.objects.present().filter(
        type__in=StackResource.NESTING
    )
    trees = Trees(stacks, list(parts.defer("properties").order_by("pk")), busy)
    return HealthSnapshot(trees.read(), load_servers(busy), load_unhealthy_nodes(busy))


def load_servers(busy: frozenset[str]) -> list[UnhealthyPart]:
    marked = Server.objects.present().exclude(unhealthy_reason=None).exclude(node=None).order_by("name", "pk")
    return [make_unhealthy_part(*row, busy=busy) for row in marked.values_list("uuid", "name", "state")]


def load_unhealthy_nodes(busy: frozenset[str]) -> list[UnhealthyPart]:
    """Load the marked nodes. A node is also busy if its cluster is."""
    marked = Node.objects.present().exclude(unhealthy_reason=None).order_by("name", "pk")
    rows = marked.values_list("uuid", "name", "status", "cluster__uuid")
    return [
        make_unhealthy_part(uuid, name, status, *([cluster] if cluster else []), busy=busy)
        for uuid, name, status, cluster in rows
    ]


def make_unhealthy_part(uuid: UUID, name: str, status: str, *within: UUID, busy: frozenset[str]) -> UnhealthyPart:
    return UnhealthyPart(uuid, name, status, within, is_occupied=is_among(busy, uuid, *within))


def is_among(busy: frozenset[str], *uuids: UUID) -> bool:
    return any(str(uuid) in busy for uuid in uuids)


class Trees:
    """Assigns unhealthy resources to their root stacks."""

    def __init__(self, stacks: Sequence[Stack], parts: Sequence[StackResource], busy: frozenset[str]) -> None:
        self.busy = busy
        self.stacks = {stack.pk: stack for stack in stacks}
        self.parts = {part.pk: part for part in parts}
        self.by_name = {(part.stack_id, part.name): part.uuid for part in parts}

    def read(self) -> list[StackHealth]:
        health_by_root = {
            stack.pk: StackHealth(
                stack.uuid, stack.name, stack.status, stack.is_marked, is_occupied=is_among(self.busy, stack.uuid)
            )
            for stack in self.stacks.values()
            if stack.root_id is None
        }
        for part in self.parts.values():
            stack = self.stacks.get(part.stack_id)
            if stack is None or self.is_replaced_with_holder(part):
                continue
            health = health_by_root[stack.root_key]
            if part.is_marked:
                health.marked.append(self.describe_part(part))
            elif part.is_failed and not part.is_nesting:
                health.broken.append(self.describe_part(part))
        return list(health_by_root.values())

    def ancestors(self, part: StackResource) -> Iterator[Stack | StackResource]:
        """Yield the stacks and resources that contain a resource, from the innermost to the root."""
        stack: Stack | None = self.stacks.get(part.stack_id)
        while stack is not None:
            yield stack
            if stack.parent_resource_id is None or (parent := self.parts.get(stack.parent_resource_id)) is None:
                return
            yield parent
            stack = self.stacks.get(parent.stack_id)

    def is_replaced_with_holder(self, part: StackResource) -> bool:
        """Return whether a part is replaced with a resource that contains it, which was marked or detached."""
        ancestors = list(self.ancestors(part))
        pairs = zip(ancestors[::2], ancestors[1::2], strict=False)
        is_left = any(parent.physical_id not in (None, str(stack.uuid)) for stack, parent in pairs)  # type: ignore[union-attr]
        return is_left or any(ancestor.is_marked for ancestor in ancestors)

    def describe_part(self, part: StackResource) -> UnhealthyPart:
        within = tuple(ancestor.uuid for ancestor in self.ancestors(part))
        chain = [part, *(ancestor for ancestor in self.ancestors(part) if isinstance(ancestor, StackResource))]
        before = [self.by_name.get((ancestor.stack_id, name)) for ancestor in chain for name in ancestor.depends_on]
        return UnhealthyPart(
            part.uuid,
            part.name,
            part.status,
            within,
            tuple(uuid for uuid in before if uuid is not None),
            is_occupied=is_among(self.busy, part.uuid, *within),
        )
