"""The nodes of clusters in the model of a preflight."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar
from uuid import UUID

from cluster.models import Node

Read = TypeVar("Read")


class Members:
    """Rows of nodes as they were when they were loaded, changed in memory alone: they must never be saved."""

    def __init__(self) -> None:
        self.nodes: dict[UUID, Node | None] = {}
        self.read: dict[tuple[str, str], Any] = {}
        self.changed: set[UUID] = set()
        """The clusters and stacks that earlier actions would change: their rows do not show the change."""
        self.ended: set[UUID] = set()
        """The actions of the plan: their locks are free when the next one begins."""

    def load(self, uuids: Iterable[str]) -> None:
        """Read these nodes in one query, if any is not known yet."""
        missing = {UUID(uuid) for uuid in uuids} - self.nodes.keys()
        if missing:
            found = Node.objects.present().select_related("profile", "cluster").filter(uuid__in=missing)
            self.nodes |= {**dict.fromkeys(missing), **{node.uuid: node for node in found}}

    def find(self, uuid: str) -> Node | None:
        self.load([uuid])
        return self.nodes[UUID(uuid)]

    def once(self, key: tuple[str, str], read: Callable[[], Read]) -> Read:
        """Return the result of a function, which is called once for each key."""
        if key not in self.read:
            self.read[key] = read()
        found: Read = self.read[key]
        return found

    def add(self, node: Node) -> None:
        self.nodes[node.uuid] = node

    def remove(self, node: Node) -> None:
        self.nodes[node.uuid] = None
