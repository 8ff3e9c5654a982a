"""Make a cluster smaller by some nodes."""

from collections.abc import Sequence

from django.utils.translation import gettext_noop as _

from actions.graph.proposals import ProposedAction
from actions.types.base import Data
from actions.types.clusters.clusters import ClusterAction
from actions.types.clusters.resizing import (
    decide_shrinkage,
    deletions,
    find_done,
    find_size_left,
    shrink,
    shrink_again,
)
from actions.types.clusters.rules import bounds_of, require_left
from actions.types.nodes.nodes import schema_of
from cluster.models import Cluster
from cluster.policies.sizes import MAX_NODES


class ClusterScaleIn(ClusterAction):
    """Removes ``count`` nodes, at most all; without ``count``, as many as the scaling policy decides, else one."""

    name = "CLUSTER_SCALE_IN"
    description = _("Removing nodes from a cluster")
    only_derives = True
    schema = schema_of(
        count={
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_NODES,
            "description": "The number of nodes to remove. By default as in the scaling policy, or else 1.",
        }
    )
    status_while_running = Cluster.Status.RESIZING
    decides_once = True

    def decide(self, cluster: Cluster, data: Data) -> None:
        count = min(self.input_parameters.get("count", 1), cluster.members().count())
        decide_shrinkage(cluster, data, count, self.find_excluded)

    def require_fit(self, cluster: Cluster, data: Data) -> None:
        require_left(bounds_of(cluster), find_size_left(cluster, data, self.left_out))

    def apply(self, cluster: Cluster, data: Data) -> None:
        shrink(cluster, data, self.left_out)

    def fit_size(self, cluster: Cluster, data: Data) -> None:
        shrink_again(cluster, data, self.left_out)

    def derive(self, cluster: Cluster, data: Data) -> Sequence[ProposedAction]:
        return deletions(cluster, data)

    def complete(self, cluster: Cluster, data: Data) -> None:
        self.context.outputs["nodes_removed"] = find_done(self.context.derived, "NODE_DELETE", "NODE_LEAVE")
