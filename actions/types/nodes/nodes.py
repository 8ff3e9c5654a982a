"""The base class of actions on nodes of clusters.

An action that a user requested takes locks, and applies the policies of the node's cluster. For a derived action, the
action that derived it has done both.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from types import MappingProxyType
from typing import Any

from django.db import transaction

from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.types import messages
from actions.types.base import (
    DONE,
    NAME_SCHEMA,
    UUID_SCHEMA,
    ActionFailed,
    ActionSkipException,
    ActionType,
    Answer,
    Data,
    Outcome,
)
from actions.types.clusters.rules import apply_policies, settle_status
from actions.types.locking import has_lock, require_known, require_unlocked, take_locks
from cluster.drivers import server_properties
from cluster.drivers.base import CloudServer, NewServer, ServerNotFound, cloud
from cluster.models import Cluster, Node
from cluster.policies.base import When
from cluster.simulated import simulated_cloud
from watcher_site.state_machine import ConcurrentTransition, TransitionNotAllowed

CLUSTER = "cluster"
"""The key in an action's data of the cluster whose policies it applies, once it has begun."""
SETTLED = "settled"
"""The key that is set once the result is written to the cluster."""

NEW_NAME = {"type": "string", "minLength": 1, "maxLength": 255, "description": "The new name."}
METADATA = {"type": "object", "description": "The new metadata."}
NEW_PROFILE = {**UUID_SCHEMA, "description": "The UUID of the new profile."}


def schema_of(*required: str, **properties: Any) -> dict[str, Any]:
    """Return the schema of an action on a node, cluster or stack, with further inputs and the required ones."""
    return {
        "type": "object",
        "properties": {
            "resource_id": {**UUID_SCHEMA, "description": "The UUID of the node, cluster, stack or stack resource."},
            "resource_name": NAME_SCHEMA,
            **properties,
        },
        "required": ["resource_id", *required],
        "additionalProperties": False,
    }


class NodeAction(ActionType, ABC):
    """An action on one node, ``resource_id``. Its ``resource_name`` is for users.

    A derived action only performs the operation. For one that a user requested, see `execute_standalone`.
    """

    schema = schema_of()
    takes_locks = True
    inherits_foresight = True

    # Overridden by subclasses.

    @abstractmethod
    def act(self) -> Outcome:
        """Perform the operation on the node. It may be called again if it was completed but not recorded."""

    def find_cluster(self, node: Node) -> Cluster | None:
        """Return the cluster whose policies apply if a user requested the action."""
        return node.cluster

    def begin(self, cluster: Cluster, node: Node, data: Data) -> None:
        """Write the changes at the beginning of a requested action, in one transaction with the cluster's row.

        The row is locked, and saved afterwards. ``data`` contains the decisions of the policies.

        Raises:
            ActionFailed: the cluster's rules do not allow it.
        """

    def require_fit(self, cluster: Cluster, node: Node) -> None:
        """Check that the cluster's rules allow the changes that `begin` writes. Raises: `ActionFailed`."""

    def foresee_act(self, node: Node) -> Outcome:
        """Perform the operation on the simulated cloud and on the node in memory."""
        return self.act()

    def end(self, cluster: Cluster, data: Data) -> None:
        """Write the result, even a failure, to the cluster's row, which the caller locks and saves. Called once."""

    # Shared by all subclasses.

    def execute(self) -> Outcome:
        return self.act() if self.context.is_derived else execute_standalone(self)

    def foresee(self) -> Outcome:
        return self.foresee_act(self.node()) if self.context.is_derived else foresee_standalone(self)

    def go_on(self) -> Outcome:
        return finish_standalone(self)

    def post_condition(self) -> None:
        self.settle_cluster()

    def be_given_up(self, reason: str) -> None:
        """Run `post_condition`; a subclass whose post_condition reads the cloud overrides this."""
        self.post_condition()

    def settle_cluster(self) -> None:
        """Update the cluster after a requested action, with any result."""
        write_result(self)

    @property
    def has_begun(self) -> bool:
        """Return whether the action applies the policies of a cluster, and has begun."""
        return CLUSTER in self.context.data

    @property
    def uuid(self) -> str:
        return str(self.input_parameters["resource_id"])

    def find(self) -> Node | None:
        """Return the current node, or None if it was deleted, with one query."""
        model = simulated_cloud()
        return model.members.find(self.uuid) if model else Node.objects.find(self.uuid)

    def node(self) -> Node:
        """Return the current node. Raises: `ActionFailed` if it was deleted."""
        node = self.find()
        if node is None:
            raise ActionFailed(self.not_found_message)
        return node

    def node_to_act_on(self) -> Node:
        """Return the current node. Raises: `ActionSkipException` if it was deleted."""
        node = self.find()
        if node is None:
            raise ActionSkipException(self.not_found_message)
        return node

    @property
    def not_found_message(self) -> str:
        return messages.NODE_NOT_FOUND.fill(node=self.uuid)

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
            if simulated_cloud() is None:
                node.save_state(*(self.context.new_operation(str(server), operation) if server else ()))
        except (TransitionNotAllowed, ConcurrentTransition) as problem:
            current = self.node()
            raise ActionFailed(messages.NODE_BUSY.fill(node=self.uuid, status=current.status)) from problem

    def fail(self, status: Node.Status, reason: str) -> None:
        """Set the node to ERROR if this action left it in an intermediate status."""
        node = self.find()
        if node is not None and node.status == status and self.is_in_charge(node):
            self.change(node, node.fail, reason)

    def is_in_charge(self, node: Node) -> bool:
        """Return whether this action works on the node, rather than another one that was faster."""
        return self.context.is_derived or has_lock(node, self.context.action_uuid)


def execute_standalone(action: NodeAction) -> Outcome:
    """Execute a requested action: take locks, apply policies, perform the operation, and update the cluster.

    After a crash, another worker continues.
    """
    if CLUSTER not in action.context.data and (conflict := begin_standalone(action)):
        return conflict
    outcome = action.act()
    return finish_standalone(action) if outcome.answer is Answer.OK else outcome


def foresee_standalone(action: NodeAction) -> Outcome:
    """Check the locks, apply the deciding policies, and simulate the operation. Raises: as `begin_standalone`."""
    node, model = action.node(), simulated_cloud()
    cluster = action.find_cluster(node)
    if model and cluster is not None:
        require_known(model, cluster)
    if model and CLUSTER not in action.context.data:
        locks: list[tuple[Cluster | Node, bool]] = [(cluster, False)] if cluster else []
        require_unlocked(model, action.context.action_uuid, [*locks, (node, True)])
        if cluster is not None:
            data = action.context.data
            action.context.save_data(apply_policies(action, When.BEFORE, cluster, data, node=node, deciding_only=True))
            action.require_fit(cluster, node)
    return action.foresee_act(node)


def begin_standalone(action: NodeAction) -> Outcome | None:
    """Take the locks, apply the policies, and write the beginning; return a RETRY if another action holds a lock.

    Raises:
        ActionFailed: the cluster's rules, or its policies, do not allow it.
    """
    node = action.node()
    cluster = action.find_cluster(node)
    locks: list[tuple[Cluster | Node, bool]] = [(cluster, False)] if cluster else []
    if conflict := take_locks(action.context.action_uuid, [*locks, (node, True)]):
        return conflict
    locked = action.node()
    if locked.cluster_id != node.cluster_id:
        return Outcome(Answer.RETRY, messages.JUST_JOINED_OR_LEFT.fill(node=node.uuid))
    if cluster is not None:
        data = apply_policies(action, When.BEFORE, cluster, action.context.data, node=locked)
        write_beginning(action, cluster, locked, data)
    return None


@transaction.atomic
def write_beginning(action: NodeAction, cluster: Cluster, node: Node, data: Data) -> None:
    locked = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
    action.begin(locked, node, data)
    locked.save_state()
    action.context.save_data({**data, CLUSTER: str(cluster.uuid)})


def finish_standalone(action: NodeAction) -> Outcome:
    """Update the cluster, and apply its policies after the action, unless a derived action failed or was cancelled."""
    write_result(action)
    cluster = read_cluster(action.context.data)
    failed = [
        child for child in action.context.derived if child.state in (Action.State.FAILED, Action.State.CANCELLED)
    ]
    if cluster is not None and not failed:
        node = action.find()
        data = apply_policies(action, When.AFTER, cluster, action.context.data, node=node)
        action.context.save_data(data)
    return DONE


def write_result(action: NodeAction) -> None:
    """Write the result to the row of the cluster once, if the action has begun."""
    data = action.context.data
    if CLUSTER in data and not data.get(SETTLED) and simulated_cloud() is None:
        write_end(action, data)


@transaction.atomic
def write_end(action: NodeAction, data: Data) -> None:
    cluster = read_cluster(data, lock=True)
    if cluster is not None:
        action.end(cluster, data)
        if cluster.status != Cluster.Status.INIT:
            settle_status(cluster, action.name)
        cluster.save_state()
    action.context.save_data({**data, SETTLED: True})


def read_cluster(data: Data, *, lock: bool = False) -> Cluster | None:
    clusters = Cluster.objects.present()
    rows = clusters.select_for_update(no_key=True) if lock else clusters
    cluster: Cluster | None = rows.filter(uuid=data[CLUSTER]).first() if CLUSTER in data else None
    return cluster


def atomic_unless_simulated() -> AbstractContextManager[Any]:
    """Return a transaction, or a context without effect in a preflight, which writes nothing."""
    return transaction.atomic() if simulated_cloud() is None else nullcontext()


def find_server(node: Node) -> CloudServer | None:
    """Return the server that was, or is being, created for a node, even if its UUID was not recorded."""
    return cloud().find_created(node.name, node.token, node.project_id)


def delete_server_of(node: Node) -> None:
    """Delete the server of a node, even if its UUID was not recorded, if it exists."""
    server = node.physical_id or find_server(node)
    if server:
        with suppress(ServerNotFound):
            cloud().delete_server(str(getattr(server, "uuid", server)))


def request_for(node: Node) -> NewServer:
    """Return the request for a node's server, from its profile and the placement that policies decided."""
    spec, placement = node.profile.spec, node.data.get("placement", {})
    return NewServer(
        name=node.name,
        flavor=spec["flavor"],
        token=node.token,
        image=spec.get("image"),
        metadata=spec.get("metadata", {}),
        zone=placement.get("zone") or spec.get("availability_zone"),
        host=placement.get("host"),
        project=node.project_id,
        user=node.user_id,
        trust=node.trust.keystone_id if node.trust else "",
        properties=server_properties.select_properties(spec),
    )


def node_action(
    action_type: str, node: Node, inputs: Mapping[str, Any] = MappingProxyType({}), **options: Any
) -> ProposedAction:
    """Return a proposed action on a node."""
    acted_on = {"resource_id": str(node.uuid), "resource_name": node.name}
    return ProposedAction(action_type, {**acted_on, **inputs}, **options)
