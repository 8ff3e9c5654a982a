"""Create the server of a node."""

from contextlib import suppress

from actions.types import messages
from actions.types.base import DONE, UUID_SCHEMA, ActionSkipException, Data, Outcome, Recovery, explain
from actions.types.clusters.resizing import placements_of
from actions.types.nodes.membership import find_joined, join_as_requested, require_joinable
from actions.types.nodes.nodes import NodeAction, find_server, request_for, schema_of
from cluster.drivers.base import CloudBusy, CloudError, ServerNotFound, cloud
from cluster.models import Cluster, Node

Status = Node.Status


class NodeCreate(NodeAction):
    """Creates the server of a node. The token of the node ensures that repeated executions create only one server.

    With ``cluster_id``, a stand-alone node joins that cluster first.
    """

    name = "NODE_CREATE"
    description = "Creating the server of a node"
    schema = schema_of(cluster_id={**UUID_SCHEMA, "description": "The cluster that a node without one joins first."})

    def pre_condition(self) -> None:
        if has_server(self.node_to_act_on()) and not self.has_begun:
            raise ActionSkipException(messages.HAS_SERVER.fill(node=self.uuid))

    def find_cluster(self, node: Node) -> Cluster | None:
        return find_joined(self, node)

    def begin(self, cluster: Cluster, node: Node, data: Data) -> None:
        node.data = {**node.data, **placements_of([str(node.uuid)], data).get(str(node.uuid), {})}
        join_as_requested(cluster, node)

    def require_fit(self, cluster: Cluster, node: Node) -> None:
        require_joinable(cluster, node)

    def act(self) -> Outcome:
        node = self.node()
        if self.has_begun and has_server(node):
            return self.store_outputs(node)
        self.change(node, node.begin_creation)
        try:
            server = cloud().create_server(request_for(node), self.context.checkpoint)
        except CloudBusy:
            raise
        except CloudError as problem:
            self.fail(Status.CREATING, explain(problem))
            raise
        self.change(node, node.finish_creation, server.uuid, operation="create", server=server.uuid)
        return self.store_outputs(node)

    def store_outputs(self, node: Node) -> Outcome:
        self.context.outputs["physical_id"] = str(node.physical_id)
        return DONE

    def post_condition(self) -> None:
        """Set a node that was not created to ERROR, for example after too many retries."""
        self.fail(Status.CREATING, messages.NOT_CREATED.text)
        self.settle_cluster()

    def abort(self) -> bool:
        node = self.find()
        if node is None or has_server(node):
            return False
        self.undo(node)
        self.settle_cluster()
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
        """Repeat a creation that has begun. The token keeps the cloud from creating a second server."""
        node = self.node()
        if self.has_begun or not has_server(node):
            return Recovery.AGAIN
        self.store_outputs(node)
        return Recovery.DONE


def has_server(node: Node) -> bool:
    return node.status in Node.SETTLED and node.physical_id is not None
