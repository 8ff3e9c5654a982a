"""Create the server of a node."""

from contextlib import suppress

from actions.types.base import DONE, ActionSkipException, Outcome, Recovery
from actions.types.clusters.nodes import NodeAction, find_server
from cluster.drivers.base import CloudBusy, CloudError, NewServer, ServerNotFound, cloud
from cluster.models import Node

Status = Node.Status


class NodeCreate(NodeAction):
    """The node's UUID is the token: however often it is executed, there is one server."""

    name = "NODE_CREATE"
    description = "Creating the server of a node"

    def pre_condition(self) -> None:
        if has_server(self.node_to_act_on()):
            raise ActionSkipException(f"Node {self.uuid} has its server already")

    def execute(self) -> Outcome:
        node = self.node()
        self.change(node, node.begin_creation)
        try:
            server = cloud().create_server(wanted(node), self.context.checkpoint)
        except CloudBusy:
            raise
        except CloudError as problem:
            self.fail(Status.CREATING, str(problem))
            raise
        self.change(node, node.finish_creation, server.uuid)
        self.context.outputs["physical_id"] = server.uuid
        return DONE

    def post_condition(self) -> None:
        """A node that is not created by now was put off once too often, or something unforeseen came."""
        self.fail(Status.CREATING, "Its server was not created")

    def abort(self) -> bool:
        node = self.find()
        if node is None or has_server(node):
            return False
        self.undo(node)
        return True

    def revert(self) -> bool:
        if node := self.find():
            self.undo(node)
        return True

    def undo(self, node: Node) -> None:
        if server := find_server(node):
            with suppress(ServerNotFound):
                cloud().delete_server(server.uuid)
        self.change(node, node.undo_creation)

    def recover(self) -> Recovery:
        """Whatever was begun is gone on with: the cloud knows the token."""
        node = self.node()
        if not has_server(node):
            return Recovery.AGAIN
        self.context.outputs["physical_id"] = str(node.physical_id)
        return Recovery.DONE


def has_server(node: Node) -> bool:
    return node.status in Node.SETTLED and node.physical_id is not None


def wanted(node: Node) -> NewServer:
    spec, placement = node.profile.spec, node.data.get("placement", {})
    return NewServer(
        name=node.name,
        flavor=spec["flavor"],
        token=str(node.uuid),
        image=spec.get("image"),
        metadata=spec.get("metadata", {}),
        zone=placement.get("zone"),
        host=placement.get("host"),
    )
