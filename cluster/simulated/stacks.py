"""The stacks with their resources, and the nodes of clusters, in the simulated cloud."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Q

from cluster.models import Node, Server, Stack, StackResource
from cluster.models.stacks import MARKED
from cluster.stacks.current import TreeBuilder
from cluster.stacks.decisions import Decision, NewResource, NewStack, Template, make_resource, make_stack

Read = TypeVar("Read")


class SimulatedStacks(TreeBuilder):
    """Copies of whole trees of stacks in memory. Their rows must never be saved.

    Rows refer to the same instances, so that each change is visible everywhere.
    """

    def __init__(self, servers: Mapping[UUID, Server]) -> None:
        super().__init__((), (), ServerStates(servers))
        self.stacks: dict[UUID, Stack | None] = {}
        self.resources: dict[UUID, StackResource | None] = {}
        # Keys of new rows are negative, to be different from those of the tables.
        self.new_keys = count(-1, -1)

    def load(self, uuids: Iterable[str]) -> None:
        """Load the trees of these stacks and resources in four queries, unless they are loaded."""
        missing = {UUID(uuid) for uuid in uuids}.difference(self.stacks, self.resources)
        if not missing:
            return
        stacks, resources = Stack.objects.present(), StackResource.objects.present()
        pairs = [*stacks.filter(uuid__in=missing).values_list("root", "pk")]
        pairs += resources.filter(uuid__in=missing).values_list("stack__root", "stack")
        roots = {root or key for root, key in pairs}
        if roots:
            of_trees = stacks.filter(Q(pk__in=roots) | Q(root__in=roots))
            parts = resources.filter(Q(stack__in=roots) | Q(stack__root__in=roots))
            self.link(list(of_trees.order_by("pk")), list(parts.order_by("pk")))
        for uuid in missing:
            if uuid not in self.resources:
                self.stacks.setdefault(uuid, None)
            if uuid not in self.stacks:
                self.resources.setdefault(uuid, None)

    def link(self, stacks: list[Stack], resources: list[StackResource]) -> None:
        """Add the rows of whole trees, unless they are loaded."""
        stacks = [stack for stack in stacks if stack.uuid not in self.stacks]
        by_key = {stack.pk: stack for stack in stacks}
        parts = {resource.pk: resource for resource in resources if resource.stack_id in by_key}
        for resource in parts.values():
            resource.stack = by_key[resource.stack_id]
            self.add_resource(resource)
        for stack in stacks:
            stack.root = by_key.get(stack.root_id) if stack.root_id else None
            if stack.parent_resource_id:
                stack.parent_resource = parts.get(stack.parent_resource_id)
            self.add_stack(stack)

    def find_stack(self, uuid: str) -> Stack | None:
        self.load([uuid])
        return self.stacks.get(UUID(uuid))

    def find_resource(self, uuid: str) -> StackResource | None:
        self.load([uuid])
        return self.resources.get(UUID(uuid))

    def find_new(self, uuid: str) -> StackResource | None:
        """Return a resource that the simulation created, or None, without a query."""
        try:
            resource = self.resources.get(UUID(uuid))
        except ValueError:
            return None
        return resource if resource and resource.pk < 0 else None

    def add_stack(self, stack: Stack) -> None:
        self.stacks[stack.uuid] = stack
        if stack.parent_resource:
            self.within[stack.parent_resource.pk].append(stack)

    def add_resource(self, resource: StackResource) -> None:
        self.resources[resource.uuid] = resource
        self.parts[resource.stack.pk].append(resource)

    def remove_stack(self, stack: Stack) -> None:
        self.stacks[stack.uuid] = None
        if stack.parent_resource:
            self.within[stack.parent_resource.pk].remove(stack)

    def remove_resource(self, resource: StackResource) -> None:
        self.resources[resource.uuid] = None
        self.parts[resource.stack.pk].remove(resource)

    def tree(self, stack: Stack) -> Iterable[Stack | StackResource]:
        """Yield a stack and its resources and nested stacks, at any depth."""
        yield stack
        for resource in self.parts[stack.pk]:
            yield resource
            for nested in self.within[resource.pk]:
                yield from self.tree(nested)

    def write(self, root: Stack, decision: Decision) -> None:
        """Apply a decision to the rows in memory, as `cluster.stacks.decisions.write_decision` does to the tables."""
        self.write_templates(root, decision)
        for uuid in decision.marked:
            if resource := self.resources.get(UUID(uuid)):
                resource.mark_unhealthy(MARKED)
        templates = {**decision.templates, **{new.uuid: new.template for new in decision.stacks}}
        new_resources, new_stacks = list(decision.resources), list(decision.stacks)
        while new_resources or new_stacks:
            remaining = len(new_resources) + len(new_stacks)
            new_resources = [new for new in new_resources if not self.make_resource(new, templates)]
            new_stacks = [new for new in new_stacks if not self.make_stack(new, root)]
            if len(new_resources) + len(new_stacks) == remaining:
                return  # The stacks or resources that contain them were deleted.

    def write_templates(self, root: Stack, decision: Decision) -> None:
        for uuid, template in decision.templates.items():
            stack = self.stacks.get(UUID(uuid))
            if stack is None:
                continue
            if stack is not root:
                stack.template = template
            for resource in self.parts[stack.pk]:
                if definition := template["resources"].get(resource.name):
                    resource.depends_on = list(definition["depends_on"])

    def make_resource(self, new: NewResource, templates: Mapping[str, Template]) -> bool:
        """Add a resource unless it exists; return false if its stack does not exist yet."""
        stack = self.stacks.get(UUID(new.stack))
        if stack is None:
            return False
        if self.resources.get(UUID(new.uuid)) is None:
            resource = make_resource(new, stack, templates)
            resource.pk = next(self.new_keys)
            self.add_resource(resource)
        return True

    def make_stack(self, new: NewStack, root: Stack) -> bool:
        """Add the stack within a resource unless it exists; return false if the resource does not exist yet."""
        parent = self.resources.get(UUID(new.parent))
        if parent is None:
            return False
        if self.stacks.get(UUID(new.uuid)) is None:
            nested = make_stack(new, root, parent)
            nested.pk = next(self.new_keys)
            self.add_stack(nested)
        return True


class ServerStates(Mapping[str, str]):
    """The states of the servers of a model, by their UUIDs as texts."""

    def __init__(self, servers: Mapping[UUID, Server]) -> None:
        self.servers = servers

    def __getitem__(self, uuid: str) -> str:
        try:
            return str(self.servers[UUID(uuid)].state)
        except ValueError as malformed:
            raise KeyError(uuid) from malformed

    def __iter__(self) -> Iterator[str]:
        return map(str, self.servers)

    def __len__(self) -> int:
        return len(self.servers)


class SimulatedNodes:
    """Copies of nodes of clusters in memory. The rows must never be saved."""

    def __init__(self) -> None:
        self.nodes: dict[UUID, Node | None] = {}
        self.read: dict[tuple[str, str], Any] = {}
        self.changed: set[UUID] = set()
        """The clusters and stacks that earlier actions would change. Their rows do not show the change."""
        self.ended: set[UUID] = set()
        """The actions of the plan that have ended in the simulation, whose locks are free."""

    def load(self, uuids: Iterable[str]) -> None:
        """Load these nodes in one query, unless they are loaded."""
        missing = {UUID(uuid) for uuid in uuids} - self.nodes.keys()
        if missing:
            nodes = Node.objects.present().select_related("profile", "cluster", "trust").filter(uuid__in=missing)
            self.nodes |= {**dict.fromkeys(missing), **{node.uuid: node for node in nodes}}

    def find(self, uuid: str) -> Node | None:
        self.load([uuid])
        return self.nodes[UUID(uuid)]

    def read_once(self, key: tuple[str, str], read: Callable[[], Read]) -> Read:
        """Return the result of a function, which is called once for each key."""
        if key not in self.read:
            self.read[key] = read()
        value: Read = self.read[key]
        return value

    def add(self, node: Node) -> None:
        self.nodes[node.uuid] = node

    def remove(self, node: Node) -> None:
        self.nodes[node.uuid] = None
