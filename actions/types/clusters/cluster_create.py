"""Create the nodes of a new cluster."""

from collections.abc import Sequence
from typing import Any

from actions.proposals import ProposedAction
from actions.types.clusters.clusters import ClusterAction
from actions.types.clusters.growth import creations, decide_growth, write_new_nodes
from cluster.models import Cluster


class ClusterCreate(ClusterAction):
    """A cluster whose creation failed half-way has the nodes that came to be, and can be recovered or deleted."""

    name = "CLUSTER_CREATE"
    description = "Creating the nodes of a cluster"
    at_work = Cluster.Status.CREATING

    def decide(self, cluster: Cluster, data: dict[str, Any]) -> None:
        decide_growth(data, cluster.desired_capacity)

    def apply(self, cluster: Cluster, data: dict[str, Any]) -> None:
        cluster.desired_capacity = write_new_nodes(cluster, data, self.left_out)

    def derive(self, cluster: Cluster, data: dict[str, Any]) -> Sequence[ProposedAction]:
        return creations(cluster, data)

    def complete(self, cluster: Cluster, data: dict[str, Any]) -> None:
        self.context.outputs["nodes_added"] = [str(one.target) for one in self.context.derived]
