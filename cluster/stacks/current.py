"""The current state of a root stack with its resources and nested stacks, the input of `cluster.stacks.changes`."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from cluster.models import Server, Stack, StackResource, StackStatus
from cluster.models.stacks import FAILED, IN_PROGRESS

UNHEALTHY_STATES = frozenset({Server.State.ERROR, Server.State.PENDING, Server.State.BUILDING})

# The caller has the lock of the stack, so an operation that is still in progress was interrupted.
UNSUCCESSFUL = (*FAILED, *IN_PROGRESS)


@dataclass(frozen=True)
class CurrentResource:
    """The current state of a resource.

    ``has_server``: its server exists; ``is_well``: the server is healthy; ``has_former``: the replaced counterpart may
    still exist. ``nested`` is the stack within. ``strays`` are obsolete stacks, left by interrupted replacements.
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
        return self.status in UNSUCCESSFUL

    @property
    def is_marked(self) -> bool:
        return self.status == StackStatus.CHECK_FAILED

    @property
    def is_made(self) -> bool:
        """Return whether its creation ever began."""
        return self.status != StackStatus.INIT_COMPLETE

    @property
    def all_marked(self) -> list[str]:
        """The UUIDs of the marked objects in its tree, as `CurrentStack.all_marked`."""
        of_parts = [uuid for stack in self.within for uuid in stack.all_marked]
        return [self.uuid, *of_parts] if self.is_marked else of_parts

    @property
    def within(self) -> Sequence["CurrentStack"]:
        """All stacks within it, including obsolete ones."""
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
        return self.status in UNSUCCESSFUL

    @property
    def is_marked(self) -> bool:
        return self.status == StackStatus.CHECK_FAILED

    @property
    def all_marked(self) -> list[str]:
        """The UUIDs of all objects in its tree that a user marked, including itself."""
        of_parts = [uuid for part in self.resources for uuid in part.all_marked]
        return [self.uuid, *of_parts] if self.is_marked else of_parts


def read_tree(root: Stack) -> CurrentStack:
    """Return the current state of a root stack in three queries."""
    stacks = list(Stack.objects.present().tree(root).order_by("pk"))
    resources = list(StackResource.objects.present().tree(root).order_by("pk"))
    states = server_states_of(resource.physical_id for resource in resources if not resource.is_nesting)
    return TreeBuilder(stacks, resources, states).stack(next(stack for stack in stacks if stack.pk == root.pk))


class TreeBuilder:
    """Builds a tree from rows and the states of existing servers by UUID."""

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
        current_stack = next((stack for stack in stacks if str(stack.uuid) == row.physical_id), None)
        # A resource whose creation was skipped does not refer to its stack yet.
        nested = current_stack or (stacks[-1] if stacks and row.physical_id is None else None)
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
            is_well=state is not None and state not in UNHEALTHY_STATES,
            has_former=row.former_physical_id is not None,
            nested=self.stack(nested) if nested else None,
            strays=[self.stack(stack) for stack in stacks if stack is not nested],
        )


def server_states_of(servers: Any) -> dict[str, str]:
    """Return the states of the existing ones among these servers by UUID."""
    uuids = {UUID(server) for server in servers if server}
    present = Server.objects.present().filter(uuid__in=uuids).values_list("uuid", "state") if uuids else ()
    return {str(uuid): state for uuid, state in present}
