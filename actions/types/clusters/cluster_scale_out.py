"""Make a cluster larger by some nodes."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_noop as _

from actions.graph.proposals import ProposedAction
from actions.types.clusters.clusters import ClusterAction
from actions.types.clusters.resizing import creations, decide_growth, find_done, remove_uncreated, write_new_nodes
from actions.types.clusters.rules import bounds_of, require_size
from actions.types.nodes.nodes import schema_of
from cluster.models import Cluster, Node
from cluster.policies.sizes import MAX_NODES


class ClusterScaleOut(ClusterAction):
    """Adds ``count`` nodes; without ``count``, as many as the scaling policy decides, else one."""

    name = "CLUSTER_SCALE_OUT"
    description = _("Adding nodes to a cluster")
    only_derives = True
    schema = schema_of(
        count={
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_NODES,
            "description": "The number of nodes to add. By default as in the scaling policy, or else 1.",
        }
    )
    status_while_running = Cluster.Status.RESIZING
    decides_once = True

    def decide(self, cluster: Cluster, data: dict[str, Any]) -> None:
        count = data.get("creation", {}).get("count") or self.input_parameters.get("count", 1)
        require_size(bounds_of(cluster), cluster.members().count() + count)
        decide_growth(data, count)

    def require_fit(self, cluster: Cluster, data: dict[str, Any]) -> None:
        skipped, nodes = self.left_out, data["creation"]["nodes"]
        come = Node.objects.filter(uuid__in=nodes).count()
        coming = len([uuid for uuid in nodes if uuid not in skipped]) - come
        require_size(bounds_of(cluster), cluster.members().count() + coming)

    def apply(self, cluster: Cluster, data: dict[str, Any]) -> None:
        size = cluster.members().count()
        cluster.desired_capacity = size + write_new_nodes(cluster, data, self.left_out)
        require_size(bounds_of(cluster), cluster.desired_capacity)

    def fit_size(self, cluster: Cluster, data: dict[str, Any]) -> None:
        remove_uncreated(cluster, data, self.left_out)

    def derive(self, cluster: Cluster, data: dict[str, Any]) -> Sequence[ProposedAction]:
        return creations(cluster, data)

    def complete(self, cluster: Cluster, data: dict[str, Any]) -> None:
        self.context.outputs["nodes_added"] = find_done(self.context.derived, "NODE_CREATE")
