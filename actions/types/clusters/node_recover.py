"""Have a node get a server that runs, where its own does not."""

from contextlib import suppress
from typing import Any

from actions.types.base import DONE, ActionFailed, Outcome, Recovery, explain
from actions.types.clusters.node_check import find_problem
from actions.types.clusters.nodes import NodeAction, find_server, schema_of, written_together
from actions.types.clusters.recovery import OPERATION, Operation
from actions.types.clusters.replacement import replace_server
from cluster.drivers.base import CloudBusy, CloudError, ServerNotFound, cloud
from cluster.models import Node

Status = Node.Status
STOPPED = "SHUTOFF"
# What is done to the server that a node has, in Nova's words.
OPERATIONS = {Operation.REBOOT: "reboot", Operation.REBUILD: "rebuild", Operation.RECREATE: "delete"}
RECOVERY = "recovery"
"""The key in an action's data of what is done, once it has begun: the operation and the generation of the server."""


class NodeRecover(NodeAction):
    """What is done is decided and saved when the node begins to read RECOVERING: whoever goes on does the same.

    With ``check`` it looks first, and leaves a server alone that runs.
    """

    name = "NODE_RECOVER"
    description = "Recovering a node"
    schema = schema_of(operation=OPERATION, check={"type": "boolean"})

    @property
    def operation(self) -> Operation:
        """What is done to the server: as asked for, else as the health policy says, else another takes its place."""
        decided = self.context.data.get("health", {}).get("recover_action")
        return Operation(self.input_parameters.get("operation") or decided or Operation.RECREATE)

    def pre_condition(self) -> None:
        self.require_server(self.node_to_act_on())

    def require_server(self, node: Node) -> None:
        """Raises: `ActionFailed`, where there is no server to do the operation to."""
        if node.physical_id is None and self.operation != Operation.RECREATE:
            raise ActionFailed(f"Node {self.uuid} has no server: {self.operation} is not possible, RECREATE is")

    def act(self) -> Outcome:
        node = self.node()
        if self.is_done(node):
            return self.tell(node, self.operation)
        if not self.is_begun and self.input_parameters.get("check") and not find_problem(node):
            self.change(node, node.find_well)
            return self.tell(node, None)
        self.begin_recovery(node)
        try:
            server = self.restore(node)
        except CloudBusy:
            raise
        except CloudError as problem:
            self.fail(Status.RECOVERING, explain(problem))
            raise
        self.change(node, node.finish_recovery, server, operation="create", server=replaced_by(node, server))
        return self.tell(node, self.operation)

    @property
    def is_begun(self) -> bool:
        return RECOVERY in self.context.data

    def is_done(self, node: Node) -> bool:
        return self.is_begun and node.status == Status.ACTIVE

    def begin_recovery(self, node: Node) -> None:
        with written_together():
            self.change(node, node.begin_recovery, operation=OPERATIONS[self.operation], server=node.physical_id)
            if not self.is_begun:
                decision = {"operation": self.operation, "generation": node.generation + 1}
                self.context.save_data({**self.context.data, RECOVERY: decision})

    def restore(self, node: Node) -> str:
        """Do what was decided, and return the UUID of the server that the node has then."""
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

    def tell(self, node: Node, operation: Operation | None) -> Outcome:
        """Leave what was done, nothing where the server ran, and how the node is."""
        outputs: dict[str, Any] = {"operation": operation, "status": node.status, "physical_id": str(node.physical_id)}
        self.context.outputs.update(outputs)
        return DONE

    def post_condition(self) -> None:
        """A node that is not recovered by now was put off once too often, or something unforeseen came."""
        self.fail(Status.RECOVERING, "Its server was not recovered")
        self.settle_cluster()

    def abort(self) -> bool:
        """A server that was to take another's place goes again; the one before does not come back."""
        node = self.find()
        if node is None or node.status != Status.RECOVERING:
            return False
        with suppress(ServerNotFound):
            if node.physical_id:
                cloud().reconcile(str(node.physical_id))
            elif server := find_server(node):
                cloud().delete_server(server.uuid)
        self.fail(Status.RECOVERING, "Its recovery was interrupted")
        self.settle_cluster()
        return True

    def recover(self) -> Recovery:
        """What was begun is gone on with, if it had not come to its end."""
        node = self.node()
        if self.has_begun or not self.is_done(node):
            return Recovery.AGAIN
        self.tell(node, self.operation)
        return Recovery.DONE


def replaced_by(node: Node, server: str) -> str | None:
    """Return the server that a node is to have where that is another than it had."""
    return None if str(node.physical_id) == server else server
