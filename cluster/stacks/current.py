"""The current state of a root stack with everything within it, read in a constant number of queries.

`cluster.stacks.changes` decides by this alone which changes are needed.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from cluster.models import Server, Stack, StackResource, StackStatus
from cluster.models.stacks import FAILED, IN_PROGRESS

ILL = frozenset({Server.State.ERROR, Server.State.PENDING, Server.State.BUILDING})

# Who decides has the lock: nobody came to an end with what still reads as at work.
NOT_WELL = (*FAILED, *IN_PROGRESS)


@dataclass(frozen=True)
class CurrentResource:
    """A resource as its row, its server and the stacks within tell.

    ``has_server``: what it names in the cloud is there; ``is_well``: that is not broken either; ``has_former``: what
    it took the place of may be there still. ``nested`` is the stack within; ``strays`` are others that were, or were
    to be, in its place, and that nobody needs.
    """

    uuid: str
    name: str
    type: str
    status: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    depends_on: Sequence[str] = ()
    generation: int = 0
    made_at: datetime | None = None
    has_server: bool = False
    is_well: bool = False
    has_former: bool = False
    nested: "CurrentStack | None" = None
    strays: Sequence["CurrentStack"] = ()

    @property
    def is_failed(self) -> bool:
        return self.status in NOT_WELL

    @property
    def is_marked(self) -> bool:
        return self.status == StackStatus.CHECK_FAILED

    @property
    def is_made(self) -> bool:
        """Return whether its creation was ever begun."""
        return self.status != StackStatus.INIT_COMPLETE

    @property
    def all_marked(self) -> list[str]:
        """As `CurrentStack.all_marked`."""
        of_parts = [uuid for stack in self.within for uuid in stack.all_marked]
        return [self.uuid, *of_parts] if self.is_marked else of_parts

    @property
    def within(self) -> Sequence["CurrentStack"]:
        """All stacks that are within it, the strays as well."""
        return [self.nested, *self.strays] if self.nested else self.strays

    @property
    def precedence(self) -> tuple[bool, float, str]:
        """Return the sort key for the removal of group members, as in `StackResourceQuerySet.failed_first`."""
        return not self.is_failed, self.made_at.timestamp() if self.made_at else 0, self.name


@dataclass(frozen=True)
class CurrentStack:
    """A stack with its resources."""

    uuid: str
    name: str
    status: str = StackStatus.CREATE_COMPLETE
    resources: Sequence[CurrentResource] = ()

    @cached_property
    def by_name(self) -> dict[str, CurrentResource]:
        return {resource.name: resource for resource in self.resources}

    @property
    def is_failed(self) -> bool:
        return self.status in NOT_WELL

    @property
    def is_marked(self) -> bool:
        return self.status == StackStatus.CHECK_FAILED

    @property
    def all_marked(self) -> list[str]:
        """The UUIDs of all that a person marked, of itself and of what is in it at any depth."""
        of_parts = [uuid for part in self.resources for uuid in part.all_marked]
        return [self.uuid, *of_parts] if self.is_marked else of_parts


def read_tree(root: Stack) -> CurrentStack:
    """Return a root stack as it stands: three queries."""
    stacks = list(Stack.objects.present().tree(root).order_by("pk"))
    resources = list(StackResource.objects.present().tree(root).order_by("pk"))
    states = states_of(resource.physical_id for resource in resources if not resource.is_nesting)
    return Reader(stacks, resources, states).stack(next(stack for stack in stacks if stack.pk == root.pk))


class Reader:
    """Puts rows together into a tree, with the states of the servers that there are, by their UUIDs."""

    def __init__(
        self, stacks: Sequence[Stack], resources: Sequence[StackResource], servers: Mapping[str, str]
    ) -> None:
        self.within: dict[int, list[Stack]] = defaultdict(list)
        self.parts: dict[int, list[StackResource]] = defaultdict(list)
        for stack in stacks:
            if stack.parent_resource_id:
                self.within[stack.parent_resource_id].append(stack)
        for resource in resources:
            self.parts[resource.stack_id].append(resource)
        self.servers = servers

    def stack(self, stack: Stack) -> CurrentStack:
        resources = [self.resource(resource) for resource in self.parts[stack.pk]]
        return CurrentStack(str(stack.uuid), stack.name, stack.status, resources)

    def resource(self, row: StackResource) -> CurrentResource:
        state = self.servers.get(row.physical_id or "")
        stacks = self.within[row.pk]
        named = next((stack for stack in stacks if str(stack.uuid) == row.physical_id), None)
        # One whose creation was skipped has not named its stack yet.
        nested = named or (stacks[-1] if stacks and row.physical_id is None else None)
        return CurrentResource(
            uuid=str(row.uuid),
            name=row.name,
            type=row.type,
            status=row.status,
            properties=row.properties,
            depends_on=row.depends_on,
            generation=row.generation,
            made_at=row.made_at,
            has_server=state is not None,
            is_well=state is not None and state not in ILL,
            has_former=row.former_physical_id is not None,
            nested=self.stack(nested) if nested else None,
            strays=[self.stack(stack) for stack in stacks if stack is not nested],
        )


def states_of(servers: Any) -> dict[str, str]:
    """Return the states of those of these servers that are there, by their UUIDs."""
    uuids = {UUID(server) for server in servers if server}
    present = Server.objects.present().filter(uuid__in=uuids).values_list("uuid", "state") if uuids else ()
    return {str(uuid): state for uuid, state in present}
