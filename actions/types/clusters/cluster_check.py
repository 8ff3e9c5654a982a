"""Check whether the servers of a cluster's nodes run."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_noop as _

from actions.graph.proposals import ProposedAction
from actions.types.clusters.clusters import ClusterAction
from actions.types.nodes.nodes import node_action
from cluster.models import Cluster


class ClusterCheck(ClusterAction):
    """Checks all members of a cluster and sets its status. It succeeds if all members could be checked."""

    name = "CLUSTER_CHECK"
    description = _("Checking the nodes of a cluster")
    only_derives = True
    status_while_running = Cluster.Status.CHECKING

    def decide(self, cluster: Cluster, data: dict[str, Any]) -> None:
        """Decide nothing: all members are checked."""

    def derive(self, cluster: Cluster, data: dict[str, Any]) -> Sequence[ProposedAction]:
        return [node_action("NODE_CHECK", node) for node in cluster.members()]

    def complete(self, cluster: Cluster, data: dict[str, Any]) -> None:
        statuses = {str(action.target): action.outputs.get("status") for action in self.context.derived}
        self.context.outputs["nodes"] = {uuid: status for uuid, status in statuses.items() if status}
