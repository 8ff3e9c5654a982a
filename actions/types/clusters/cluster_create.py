"""Create the nodes of a new cluster."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_noop as _

from actions.graph.proposals import ProposedAction
from actions.types.clusters.clusters import ClusterAction
from actions.types.clusters.resizing import creations, decide_growth, find_done, remove_uncreated, write_new_nodes
from cluster.models import Cluster, Node


class ClusterCreate(ClusterAction):
    """Creates nodes. If some fail, the cluster keeps the others, and can be recovered or deleted.

    In a plan that continues its plan, servers of members and missing members are created.
    """

    name = "CLUSTER_CREATE"
    description = _("Creating the nodes of a cluster")
    status_while_running = Cluster.Status.CREATING

    def decide(self, cluster: Cluster, data: dict[str, Any]) -> None:
        members = cluster.members()
        decide_growth(data, max(cluster.desired_capacity - members.count(), 0))
        never_created = members.filter(physical_id=None, status__in=Node.CREATABLE).values_list("uuid", flat=True)
        data["creation"]["nodes"] += map(str, never_created)

    def apply(self, cluster: Cluster, data: dict[str, Any]) -> None:
        size = cluster.members().count()
        cluster.desired_capacity = size + write_new_nodes(cluster, data, self.left_out)

    def fit_size(self, cluster: Cluster, data: dict[str, Any]) -> None:
        remove_uncreated(cluster, data, self.left_out)

    def derive(self, cluster: Cluster, data: dict[str, Any]) -> Sequence[ProposedAction]:
        return creations(cluster, data)

    def complete(self, cluster: Cluster, data: dict[str, Any]) -> None:
        self.context.outputs["nodes_added"] = find_done(self.context.derived, "NODE_CREATE")
