"""Delete a node and its server."""

from contextlib import suppress

from actions.graph.proposals import ProposedAction
from actions.types import messages
from actions.types.base import DONE, Answer, Data, Outcome, Recovery, explain
from actions.types.nodes.membership import reduce_desired_capacity, require_members
from actions.types.nodes.nodes import NodeAction, delete_server_of
from cluster.drivers.base import CloudBusy, CloudError
from cluster.models import Cluster, Node
from cluster.simulated import simulated_cloud
from watcher_site.state_machine import ConcurrentTransition


class NodeDelete(NodeAction):
    """Deletes a node and its server. It can only be aborted during a grace period, and cannot be reverted."""

    name = "NODE_DELETE"
    description = "Deleting a node and its server"

    def pre_condition(self) -> None:
        if not self.has_begun:
            self.node_to_act_on()

    def begin(self, cluster: Cluster, node: Node, data: Data) -> None:
        """Set the node to DELETING, so that one of two concurrent deletions of the last nodes is refused."""
        require_members(cluster, node)
        self.change(node, node.begin_deletion)

    def end(self, cluster: Cluster, data: Data) -> None:
        if self.find() is None:
            reduce_desired_capacity(cluster, data)

    def require_fit(self, cluster: Cluster, node: Node) -> None:
        require_members(cluster, node)

    def act(self) -> Outcome:
        node = self.find()
        if node is None:
            return DONE
        if self.grace_period:
            later = ProposedAction(self.name, self.input_parameters, delay=self.grace_period)
            return Outcome(Answer.WAIT, derived=[later])
        self.change(node, node.begin_deletion, operation="delete", server=node.physical_id)
        try:
            delete_server_of(node)
        except CloudBusy:
            raise
        except CloudError as problem:
            self.fail(Node.Status.DELETING, explain(problem))
            raise
        # A concurrent deletion may have removed the row.
        with suppress(ConcurrentTransition):
            self.remove(node)
        return DONE

    def remove(self, node: Node) -> None:
        """Delete the row. Raises: `ConcurrentTransition` if it was deleted already."""
        if model := simulated_cloud():
            model.members.remove(node)
        else:
            node.remove()

    @property
    def grace_period(self) -> int:
        """Return the grace period in seconds that a policy of the cluster decided, or 0."""
        return int(self.context.data.get("deletion", {}).get("grace_period", 0))

    def go_on(self) -> Outcome:
        """Set a node that still exists to ERROR: the derived action that was to delete it failed or was cancelled."""
        self.fail(Node.Status.DELETING, messages.NOT_DELETED.text)
        return super().go_on()

    def post_condition(self) -> None:
        """Set a node that was not deleted to ERROR, for example after too many retries."""
        self.fail(Node.Status.DELETING, messages.NOT_DELETED.text)
        self.settle_cluster()

    def abort(self) -> bool:
        """Cancel the deletion if its grace period has not ended."""
        if not self.grace_period or self.find() is None:
            return False
        self.fail(Node.Status.DELETING, messages.DELETION_INTERRUPTED.text)
        self.settle_cluster()
        return True

    def recover(self) -> Recovery:
        return Recovery.AGAIN if self.has_begun or self.find() else Recovery.DONE
