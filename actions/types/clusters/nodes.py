"""What the actions on nodes share: the node that one acts on, and how it changes its status."""

from abc import ABC
from collections.abc import Callable
from typing import Any

from actions.types.base import UUID_SCHEMA, ActionFailed, ActionSkipException, ActionType
from cluster.drivers.base import CloudServer, cloud
from cluster.models import Node
from watcher_site.state import ConcurrentTransition, TransitionNotAllowed


class NodeAction(ActionType, ABC):
    """An action on one node, ``resource_id``. Its ``resource_name`` is there for people to read."""

    schema = {
        "type": "object",
        "properties": {"resource_id": UUID_SCHEMA, "resource_name": {"type": "string"}},
        "required": ["resource_id"],
        "additionalProperties": False,
    }

    @property
    def uuid(self) -> str:
        return str(self.input_parameters["resource_id"])

    def find(self) -> Node | None:
        """Return the node as it is now, unless it was deleted: one query each time."""
        return Node.objects.find(self.uuid)

    def node(self) -> Node:
        """Return the node as it is now. Raises: `ActionFailed`, where it was deleted."""
        found = self.find()
        if found is None:
            raise ActionFailed(self.gone)
        return found

    def node_to_act_on(self) -> Node:
        """Return the node as it is now. Raises: `ActionSkipException`, where it was deleted."""
        found = self.find()
        if found is None:
            raise ActionSkipException(self.gone)
        return found

    @property
    def gone(self) -> str:
        return f"Node {self.uuid} not found"

    def change(self, node: Node, transition: Callable[..., Any], *arguments: Any) -> None:
        """Have a node go through one of its transitions, unless something else is being done to it.

        Raises:
            ActionFailed: its status does not allow it, or has just changed.
        """
        try:
            transition(*arguments)
            node.save_state()
        except (TransitionNotAllowed, ConcurrentTransition) as problem:
            standing = self.node()
            raise ActionFailed(f"Node {self.uuid} is {standing.status}: something else is done to it") from problem

    def fail(self, status: Node.Status, reason: str) -> None:
        """Have the node read ERROR, if this action left it in the midst of things."""
        node = self.find()
        if node is not None and node.status == status:
            self.change(node, node.fail, reason)


def find_server(node: Node) -> CloudServer | None:
    """Return the server that was, or is being, created for a node, also where nobody wrote down which one it is."""
    return cloud().find_created(node.name, str(node.uuid))
