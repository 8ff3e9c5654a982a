"""The base of the actions on nodes: the node, and changes of its status."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

from django.db import transaction

from actions.types.base import UUID_SCHEMA, ActionFailed, ActionSkipException, ActionType, Outcome
from actions.types.locking import has_lock
from actions.types.nodes import standalone
from cluster.drivers.base import CloudServer, NewServer, ServerNotFound, cloud
from cluster.models import Cluster, Node
from cluster.simulated import foreseen_cloud
from watcher_site.state_machine import ConcurrentTransition, TransitionNotAllowed

Data = dict[str, Any]


def schema_of(*required: str, **properties: Any) -> dict[str, Any]:
    """Return the schema of an action on a node, or on a cluster, with inputs of its own, and which must be there."""
    return {
        "type": "object",
        "properties": {"resource_id": UUID_SCHEMA, "resource_name": {"type": "string"}, **properties},
        "required": ["resource_id", *required],
        "additionalProperties": False,
    }


class NodeAction(ActionType, ABC):
    """An action on one node, ``resource_id``. Its ``resource_name`` is for users.

    If a person requested it, it takes locks and applies the policies of the node's cluster: `asked` has the order. If
    an action on the cluster derived it, that action has done so, and this one only acts.
    """

    schema = schema_of()
    takes_locks = True
    inherits_foresight = True

    # What each of them is about.

    @abstractmethod
    def act(self) -> Outcome:
        """Do it to the node. May be called again where it was done already, and nobody wrote that down."""

    def find_cluster(self, node: Node) -> Cluster | None:
        """Return the cluster whose policies apply if a person requested the action."""
        return node.cluster

    def begin(self, cluster: Cluster, node: Node, data: Data) -> None:
        """Write the changes at the beginning of a requested action, in one transaction with the cluster's row.

        That row is locked, and saved afterwards. ``data`` has the decisions of the policies.

        Raises:
            ActionFailed: the cluster's rules do not allow it.
        """

    def require_fit(self, cluster: Cluster, node: Node) -> None:
        """Check that the cluster's rules allow the changes that `begin` writes. Raises: `ActionFailed`."""

    def foresee_act(self, node: Node) -> Outcome:
        """Apply `act` to the model of the cloud and to the node in memory."""
        return self.act()

    def end(self, cluster: Cluster, data: Data) -> None:
        """Write into the cluster's row, likewise, what came of it, be it good or bad. Called once."""

    # What they share.

    def execute(self) -> Outcome:
        return self.act() if self.context.is_derived else standalone.execute(self)

    def foresee(self) -> Outcome:
        return self.foresee_act(self.node()) if self.context.is_derived else standalone.foresee(self)

    def go_on(self) -> Outcome:
        return standalone.finish(self)

    def post_condition(self) -> None:
        self.settle_cluster()

    def be_given_up(self, reason: str) -> None:
        """Run `post_condition`; a subclass whose post_condition reads the cloud overrides this."""
        self.post_condition()

    def settle_cluster(self) -> None:
        """Update the cluster after a requested action, with any result."""
        standalone.settle_cluster(self)

    @property
    def has_begun(self) -> bool:
        """Return whether the action applies the policies of a cluster, and has begun."""
        return standalone.CLUSTER in self.context.data

    @property
    def uuid(self) -> str:
        return str(self.input_parameters["resource_id"])

    def find(self) -> Node | None:
        """Return the node as it is now, unless it was deleted: one query each time."""
        model = foreseen_cloud()
        return model.members.find(self.uuid) if model else Node.objects.find(self.uuid)

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

    def change(
        self, node: Node, transition: Callable[..., Any], *arguments: Any, operation: str = "", server: Any = None
    ) -> None:
        """Change the status of a node by one of its transitions, unless another operation on it is in progress.

        Args:
            operation: Nova's name of the operation that begins, or ends, on the ``server`` with this UUID, if any.

        Raises:
            ActionFailed: the node's status does not allow it, or has just changed.
        """
        try:
            transition(*arguments)
            if foreseen_cloud() is None:
                node.save_state(*(self.context.new_operation(str(server), operation) if server else ()))
        except (TransitionNotAllowed, ConcurrentTransition) as problem:
            standing = self.node()
            raise ActionFailed(f"Node {self.uuid} is {standing.status}: something else is done to it") from problem

    def fail(self, status: Node.Status, reason: str) -> None:
        """Set the node to ERROR if this action left it in an intermediate status."""
        node = self.find()
        if node is not None and node.status == status and self.is_in_charge(node):
            self.change(node, node.fail, reason)

    def is_in_charge(self, node: Node) -> bool:
        """Return whether it is at work on the node, and no other action that was faster."""
        return self.context.is_derived or has_lock(node, self.context.action_uuid)


def written_together() -> AbstractContextManager[Any]:
    """Return a transaction for the writes within; a preflight, which writes nothing, gets none."""
    return transaction.atomic() if foreseen_cloud() is None else nullcontext()


def find_server(node: Node) -> CloudServer | None:
    """Return the server that was, or is being, created for a node, also where nobody wrote down which one it is."""
    return cloud().find_created(node.name, node.token)


def delete_server(node: Node) -> None:
    """Delete the server that is known of a node, or one whose creation nobody wrote down, if it is there."""
    found = node.physical_id or find_server(node)
    if found:
        with suppress(ServerNotFound):
            cloud().delete_server(str(getattr(found, "uuid", found)))


def wanted(node: Node) -> NewServer:
    """Return the server that a node is to have, as its profile describes it and its policies placed it."""
    spec, placement = node.profile.spec, node.data.get("placement", {})
    return NewServer(
        name=node.name,
        flavor=spec["flavor"],
        token=node.token,
        image=spec.get("image"),
        metadata=spec.get("metadata", {}),
        zone=placement.get("zone"),
        host=placement.get("host"),
    )
