"""A stack as the console shows it: a tree of resources with their servers and their health."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from cluster.models import Server, Stack, StackResource
from cluster.models.stacks import FAILED, IN_PROGRESS
from cluster.stacks.current import UNHEALTHY_STATES
from watcher_site.messages import Text

# The types of resources.
KINDS: Mapping[str, Text] = {
    StackResource.Type.SERVER: _("server"),
    StackResource.Type.SCALING_GROUP: _("scaling group"),
    StackResource.Type.STACK: _("stack"),
}
# In larger trees, only branches with problems are unfolded.
MAX_UNFOLDED = 50


@dataclass
class Branch:
    """A resource of the tree, with its server, or the resources of the stack within as ``parts``."""

    resource: StackResource
    server: Server | None = None
    parts: Sequence["Branch"] = ()

    @property
    def is_under_way(self) -> bool:
        return self.resource.status in IN_PROGRESS

    @property
    def is_well(self) -> bool:
        """Return whether the resource and its server are healthy; a resource that is being created is not."""
        if self.resource.status in FAILED or self.is_under_way:
            return False
        if self.resource.is_nesting:
            return self.resource.physical_id is not None
        return self.server is not None and self.server.state not in UNHEALTHY_STATES

    @property
    def problem(self) -> str:
        """Return a description of the problem with the resource's server or stack; empty if there is none."""
        if self.resource.is_nesting:
            return "" if self.resource.physical_id else gettext("not created yet")
        if self.server is None:
            return gettext("server not found") if self.resource.physical_id else gettext("no server yet")
        if self.server.state not in UNHEALTHY_STATES:
            return ""
        return gettext("server in state %(state)s") % {"state": self.server.state}

    @property
    def kind(self) -> str:
        """The type of the resource, in the language of the reader."""
        return str(KINDS[self.resource.type])

    @cached_property
    def leaves(self) -> list["Branch"]:
        """The branches of servers in it, at any depth, or itself if it is a server."""
        if not self.resource.is_nesting:
            return [self]
        return [leaf for part in self.parts for leaf in part.leaves]

    @cached_property
    def number_well(self) -> int:
        return sum(leaf.is_well for leaf in self.leaves)

    @cached_property
    def is_all_well(self) -> bool:
        return self.is_well and all(part.is_all_well for part in self.parts)


@dataclass
class Tree:
    """A root stack with its resources, sorted by name."""

    stack: Stack
    branches: Sequence[Branch] = ()
    is_unfolded: bool = field(default=True)

    @cached_property
    def leaves(self) -> list[Branch]:
        return [leaf for branch in self.branches for leaf in branch.leaves]

    @property
    def number_well(self) -> int:
        return sum(leaf.is_well for leaf in self.leaves)

    @property
    def is_under_way(self) -> bool:
        return self.stack.status in IN_PROGRESS or any(branch.is_under_way for branch in walk(self.branches))

    @property
    def last_change(self) -> datetime:
        moments = [record.updated_at or record.created_at for record in (self.stack, *self.rows)]
        return max(moments)

    @property
    def rows(self) -> Iterator[StackResource]:
        return (branch.resource for branch in walk(self.branches))


def walk(branches: Iterable[Branch]) -> Iterator[Branch]:
    for branch in branches:
        yield branch
        yield from walk(branch.parts)


def load_tree(root: Stack) -> Tree:
    """Return the tree of a root stack in three queries."""
    stacks = Stack.objects.present().filter(root=root).values_list("pk", "uuid")
    nested = {str(uuid): key for key, uuid in stacks}
    parts: dict[int, list[StackResource]] = defaultdict(list)
    # Templates are large, not needed, and would be loaded for each resource.
    rows = StackResource.objects.present().tree(root).select_related("stack").defer("properties", "stack__template")
    resources = list(rows.order_by("name", "pk"))
    for resource in resources:
        parts[resource.stack_id].append(resource)
    servers = find_servers(resources)

    def branches(stack: Any) -> list[Branch]:
        return [
            Branch(
                resource,
                servers.get(resource.physical_id or ""),
                branches(nested.get(resource.physical_id or "")) if resource.is_nesting else (),
            )
            for resource in parts.get(stack, ())
        ]

    return Tree(root, branches(root.pk), len(resources) <= MAX_UNFOLDED)


def find_servers(resources: Iterable[StackResource]) -> dict[str, Server]:
    uuids = [UUID(resource.physical_id) for resource in resources if resource.physical_id and not resource.is_nesting]
    servers = Server.objects.present().filter(uuid__in=uuids).select_related("node") if uuids else ()
    return {str(server.uuid): server for server in servers}
