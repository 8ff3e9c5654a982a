"""Membership: removing nodes from a cluster."""

from actions.types.base import Data
from actions.types.clusters.rules import bounds_of, require_left
from cluster.models import Cluster, Node
from cluster.models.nodes import ALONE


def require_members(cluster: Cluster, node: Node) -> None:
    """Raises: `ActionFailed`, where a cluster may not do with the members that it has without this one."""
    others = cluster.members().exclude(pk=node.pk).exclude(status=Node.Status.DELETING).count()
    require_left(bounds_of(cluster), others)


def reduce_desired_capacity(cluster: Cluster, data: Data) -> None:
    """Reduce the desired capacity of a cluster that lost a node, unless its policies decided to replace the node."""
    if data.get("deletion", {}).get("reduce_desired_capacity", True):
        cluster.desired_capacity = max(cluster.desired_capacity - 1, cluster.min_size)


def leave(node: Node) -> None:
    """Remove a node from its cluster. Raises: `ConcurrentTransition`, if it has just left."""
    member_of = node.cluster_id
    node.cluster, node.index = None, ALONE
    node.save_state(guards={"cluster_id": member_of})
