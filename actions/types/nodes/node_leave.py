"""Remove a node from its cluster."""

from actions.types import messages
from actions.types.base import DONE, ActionFailed, ActionSkipException, Data, Outcome, Recovery
from actions.types.nodes.membership import leave, reduce_desired_capacity, require_members
from actions.types.nodes.nodes import NodeAction
from cluster.models import Cluster, Node
from watcher_site.state_machine import ConcurrentTransition


class NodeLeave(NodeAction):
    """Removes a node from its cluster; the node keeps its server."""

    name = "NODE_LEAVE"
    description = "Having a node leave its cluster"

    def pre_condition(self) -> None:
        if self.node_to_act_on().cluster is None and not self.has_begun:
            raise ActionSkipException(messages.STANDALONE.fill(node=self.uuid))

    def begin(self, cluster: Cluster, node: Node, data: Data) -> None:
        require_members(cluster, node)
        self.leave(node)
        reduce_desired_capacity(cluster, data)

    def require_fit(self, cluster: Cluster, node: Node) -> None:
        require_members(cluster, node)

    def foresee_act(self, node: Node) -> Outcome:
        node.cluster = None
        return DONE

    def act(self) -> Outcome:
        if not self.has_begun:
            node = self.node()
            if node.cluster is not None:
                self.leave(node)
        return DONE

    def leave(self, node: Node) -> None:
        try:
            leave(node)
        except ConcurrentTransition as problem:
            raise ActionFailed(messages.NODE_CHANGED.fill(node=self.uuid)) from problem

    def recover(self) -> Recovery:
        return Recovery.AGAIN
