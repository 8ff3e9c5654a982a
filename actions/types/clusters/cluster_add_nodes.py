"""Add stand-alone nodes to a cluster."""

from collections.abc import Sequence

from django.utils.translation import gettext_noop as _

from actions.graph.proposals import ProposedAction
from actions.types.base import Data, Outcome
from actions.types.clusters.clusters import ClusterAction
from actions.types.clusters.resizing import find_done
from actions.types.clusters.rules import bounds_of, require_size
from actions.types.locking import Lockable, take_all
from actions.types.nodes.membership import NODES, named_nodes, require_standalone
from actions.types.nodes.nodes import node_action, schema_of
from cluster.models import Cluster, Node


class ClusterAddNodes(ClusterAction):
    """Adds the given nodes in order. It also takes a lock on each of them."""

    name = "CLUSTER_ADD_NODES"
    description = _("Adding existing nodes to a cluster")
    only_derives = True
    schema = schema_of("nodes", nodes={**NODES, "description": "The UUIDs of ACTIVE nodes without a cluster."})
    status_while_running = Cluster.Status.RESIZING

    def lock(self, cluster: Cluster) -> Outcome | None:
        return take_all(self.context.action_uuid, cluster, self.input_parameters["nodes"])

    def locks(self, cluster: Cluster) -> list[tuple[Lockable, bool]]:
        return [*super().locks(cluster), *((node, True) for node in named_nodes(self))]

    def decide(self, cluster: Cluster, data: Data) -> None:
        nodes = [str(node.uuid) for node in named_nodes(self)]
        data["creation"] = {"count": len(nodes), "nodes": nodes}
        self.require_fit(cluster, data)

    def require_fit(self, cluster: Cluster, data: Data) -> None:
        joining = self.find_joining(data)
        for node in joining:
            require_standalone(node)
        require_size(bounds_of(cluster), cluster.members().count() + len(joining))

    def find_joining(self, data: Data) -> list[Node]:
        """Return the nodes to add that still exist, except those whose actions were skipped."""
        skipped = self.left_out
        uuids = [uuid for uuid in data["creation"]["nodes"] if uuid not in skipped]
        nodes = {
            str(node.uuid): node for node in Node.objects.present().select_related("cluster").filter(uuid__in=uuids)
        }
        return [nodes[uuid] for uuid in uuids if uuid in nodes]

    def apply(self, cluster: Cluster, data: Data) -> None:
        cluster.desired_capacity = cluster.members().count() + len(self.find_joining(data))

    def fit_size(self, cluster: Cluster, data: Data) -> None:
        outside = [node for node in self.find_joining(data) if node.cluster_id != cluster.pk]
        cluster.desired_capacity = cluster.members().count() + len(outside)

    def derive(self, cluster: Cluster, data: Data) -> Sequence[ProposedAction]:
        joined = {"cluster_id": str(cluster.uuid)}
        return [node_action("NODE_JOIN", node, joined) for node in self.find_joining(data)]

    def complete(self, cluster: Cluster, data: Data) -> None:
        self.context.outputs["nodes_added"] = find_done(self.context.derived, "NODE_JOIN")
