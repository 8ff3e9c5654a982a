"""Recover a node whose server does not run."""

from contextlib import suppress
from typing import Any

from actions.types import messages
from actions.types.base import DONE, ActionFailed, Outcome, Recovery, explain
from actions.types.nodes.node_check import find_problem
from actions.types.nodes.nodes import NodeAction, atomic_unless_simulated, find_server, schema_of
from actions.types.nodes.server_changes import CHECK, OPERATION, Operation, replace_server
from cluster.drivers.base import CloudBusy, CloudError, ServerNotFound, cloud
from cluster.models import Node

Status = Node.Status
STOPPED = "SHUTOFF"
# Nova's names of the operations on the current server.
OPERATIONS = {Operation.REBOOT: "reboot", Operation.REBUILD: "rebuild", Operation.RECREATE: "delete"}
RECOVERY = "recovery"
"""The key in an action's data of its decision: the operation and the generation of the server."""


class NodeRecover(NodeAction):
    """Recovers a node.

    The operation is decided and saved when the node becomes RECOVERING, and repeated after a crash.

    With ``check``, the server is checked first, and not changed if it runs.
    """

    name = "NODE_RECOVER"
    description = "Recovering a node"
    schema = schema_of(operation=OPERATION, check=CHECK)

    @property
    def operation(self) -> Operation:
        """Return the operation on the server: the requested one, else that of the health policy, else RECREATE."""
        decided = self.context.data.get("health", {}).get("recover_action")
        return Operation(self.input_parameters.get("operation") or decided or Operation.RECREATE)

    def pre_condition(self) -> None:
        self.require_server(self.node_to_act_on())

    def require_server(self, node: Node) -> None:
        """Raise `ActionFailed` if the operation requires a server and the node has none."""
        if node.physical_id is None and self.operation != Operation.RECREATE:
            raise ActionFailed(messages.NOT_RECOVERABLE.fill(node=self.uuid, recovery=self.operation))

    def act(self) -> Outcome:
        node = self.node()
        if self.is_done(node):
            return self.store_outputs(node, self.operation)
        if not self.is_begun and self.input_parameters.get("check") and not find_problem(node):
            self.change(node, node.pass_check)
            return self.store_outputs(node, None)
        self.begin_recovery(node)
        try:
            server = self.restore(node)
        except CloudBusy:
            raise
        except CloudError as problem:
            self.fail(Status.RECOVERING, explain(problem))
            raise
        self.change(node, node.finish_recovery, server, operation="create", server=replaced_by(node, server))
        return self.store_outputs(node, self.operation)

    @property
    def is_begun(self) -> bool:
        return RECOVERY in self.context.data

    def is_done(self, node: Node) -> bool:
        return self.is_begun and node.status == Status.ACTIVE

    def begin_recovery(self, node: Node) -> None:
        with atomic_unless_simulated():
            self.change(node, node.begin_recovery, operation=OPERATIONS[self.operation], server=node.physical_id)
            if not self.is_begun:
                decision = {"operation": self.operation, "generation": node.generation + 1}
                self.context.save_data({**self.context.data, RECOVERY: decision})

    def restore(self, node: Node) -> str:
        """Perform the decided operation, and return the UUID of the resulting server."""
        decision, checkpoint = self.context.data[RECOVERY], self.context.checkpoint
        server = str(node.physical_id)
        if decision["operation"] == Operation.RECREATE:
            return replace_server(self, node, decision["generation"]).uuid
        if decision["operation"] == Operation.REBOOT:
            cloud().reboot_server(server, checkpoint)
        else:
            cloud().rebuild_server(server, checkpoint=checkpoint)
            if cloud().find_server(server).status == STOPPED:
                cloud().start(server, checkpoint)
        return server

    def store_outputs(self, node: Node, operation: Operation | None) -> Outcome:
        """Store the operation, or None if the server ran, and the status of the node as outputs."""
        outputs: dict[str, Any] = {"operation": operation, "status": node.status, "physical_id": str(node.physical_id)}
        self.context.outputs.update(outputs)
        return DONE

    def post_condition(self) -> None:
        """Set a node that was not recovered to ERROR, for example after too many retries."""
        self.fail(Status.RECOVERING, messages.NOT_RECOVERED.text)
        self.settle_cluster()

    def abort(self) -> bool:
        """Delete the new server of an interrupted replacement; the former server is not restored."""
        node = self.find()
        if node is None or node.status != Status.RECOVERING:
            return False
        with suppress(ServerNotFound):
            if node.physical_id:
                cloud().reconcile(str(node.physical_id))
            elif server := find_server(node):
                cloud().delete_server(server.uuid)
        self.fail(Status.RECOVERING, messages.RECOVERY_INTERRUPTED.text)
        self.settle_cluster()
        return True

    def recover(self) -> Recovery:
        """Continue an operation that has begun and has not completed."""
        node = self.node()
        if self.has_begun or not self.is_done(node):
            return Recovery.AGAIN
        self.store_outputs(node, self.operation)
        return Recovery.DONE


def replaced_by(node: Node, server: str) -> str | None:
    """Return the server if it is a new one, else None."""
    return None if str(node.physical_id) == server else server
