"""Remove named nodes from a cluster."""

from collections.abc import Sequence

from django.utils.translation import gettext_noop as _

from actions.graph.proposals import ProposedAction
from actions.types import messages
from actions.types.base import ActionFailed, Data
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
from actions.types.nodes.membership import NODES, named_nodes
from actions.types.nodes.nodes import schema_of
from cluster.models import Cluster


class ClusterDelNodes(ClusterAction):
    """Removes the named nodes; with ``destroy_after_deletion``, or by decision of a policy, also deletes them."""

    name = "CLUSTER_DEL_NODES"
    description = _("Removing members from a cluster")
    only_derives = True
    schema = schema_of(
        "nodes",
        nodes=NODES,
        destroy_after_deletion={
            "type": "boolean",
            "description": (
                "Whether to delete the nodes with their servers. False: they leave the cluster and are kept. "
                "By default as in the deletion policy, or else false."
            ),
        },
    )
    status_while_running = Cluster.Status.RESIZING
    decides_once = True

    def prepare(self, cluster: Cluster, data: Data) -> None:
        for node in named_nodes(self):
            if node.cluster_id != cluster.pk:
                raise ActionFailed(messages.NO_MEMBER.fill(node=node.uuid, cluster=cluster.uuid))
        uuids = [str(node.uuid) for node in named_nodes(self)]
        data.setdefault("deletion", {"count": len(uuids), "candidates": uuids})

    def decide(self, cluster: Cluster, data: Data) -> None:
        requested = self.input_parameters.get("destroy_after_deletion")
        decide_shrinkage(
            cluster, data, data["deletion"]["count"], self.find_excluded, destroy_after_deletion=bool(requested)
        )
        if requested is not None:
            data["deletion"]["destroy_after_deletion"] = requested

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
