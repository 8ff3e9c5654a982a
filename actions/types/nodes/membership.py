"""Joining and leaving clusters, and the nodes in the inputs of an action."""

from typing import Any

from actions.types import messages
from actions.types.base import UUID_SCHEMA, ActionFailed, ActionType, Data
from actions.types.clusters.rules import bounds_of, require_left, require_size
from actions.types.nodes.nodes import NodeAction
from cluster.models import Cluster, Node
from cluster.models.nodes import NO_INDEX
from cluster.policies.sizes import MAX_NODES
from cluster.simulated import simulated_cloud

NODES: dict[str, Any] = {
    "type": "array",
    "items": UUID_SCHEMA,
    "minItems": 1,
    "maxItems": MAX_NODES,
    "uniqueItems": True,
    "description": "The UUIDs of the nodes.",
}


def named_nodes(action: ActionType) -> list[Node]:
    """Return the nodes in the inputs, in order. Raises: `ActionFailed` if one does not exist."""
    uuids = [uuid.lower() for uuid in action.input_parameters["nodes"]]
    present = Node.objects.present().select_related("cluster").filter(uuid__in=uuids)
    nodes = {str(node.uuid): node for node in present}
    if missing := [uuid for uuid in uuids if uuid not in nodes]:
        raise ActionFailed(messages.NODE_NOT_FOUND.fill(node=missing[0]))
    return [nodes[uuid] for uuid in uuids]


def find_joined(action: NodeAction, node: Node) -> Cluster | None:
    """Return the cluster that a node is to join according to the inputs, else its current cluster, which may be None.

    Raises:
        ActionFailed: there is no such cluster, or the node is a member of another one.
    """
    cluster_uuid = action.input_parameters.get("cluster_id")
    if cluster_uuid is None:
        return node.cluster
    if node.cluster is not None:
        if str(node.cluster.uuid) != cluster_uuid.lower():
            raise ActionFailed(already_member(node))
        return node.cluster
    cluster = find_named_cluster(cluster_uuid)
    if cluster is None:
        raise ActionFailed(messages.CLUSTER_NOT_FOUND.fill(cluster=cluster_uuid))
    if cluster.project_id != node.project_id:
        raise ActionFailed(messages.OTHER_PROJECT.fill(node=node.uuid, cluster=cluster.uuid))
    return cluster


def find_named_cluster(uuid: str) -> Cluster | None:
    """Return the cluster with this UUID, or None. A preflight reads each cluster once."""

    def read() -> Cluster | None:
        cluster: Cluster | None = Cluster.objects.present().filter(uuid=uuid).first()
        return cluster

    model = simulated_cloud()
    return model.members.read_once(("cluster", uuid), read) if model else read()


def require_standalone(node: Node) -> None:
    """Raise `ActionFailed` if a node is a member of a cluster, or is not ACTIVE."""
    if node.cluster is not None:
        raise ActionFailed(already_member(node))
    if node.status != Node.Status.ACTIVE:
        raise ActionFailed(messages.NOT_JOINABLE.fill(node=node.uuid, status=node.status))


def already_member(node: Node) -> str:
    return messages.ALREADY_MEMBER.fill(node=node.uuid, cluster=node.cluster and node.cluster.uuid)


def join_as_requested(cluster: Cluster, node: Node) -> None:
    """Add a node to a cluster unless it is a member, and increase the cluster's desired capacity.

    The caller has locked the cluster's row in a transaction, and saves it afterwards.

    Raises:
        ActionFailed: the cluster would be too large.
    """
    require_joinable(cluster, node)
    if node.cluster_id == cluster.pk:
        node.save_state()
        return
    join(cluster, node)
    cluster.desired_capacity = bounds_of(cluster).clamp(cluster.desired_capacity + 1)


def require_joinable(cluster: Cluster, node: Node) -> None:
    """Raise `ActionFailed` if a node that joins a cluster would exceed the cluster's maximum size."""
    if node.cluster_id != cluster.pk:
        require_size(bounds_of(cluster), cluster.members().count() + 1)


def join(cluster: Cluster, node: Node) -> None:
    """Add a stand-alone node as the last member, in the caller's transaction. Raises: `ConcurrentTransition`."""
    node.cluster, node.index = cluster, cluster.next_index
    cluster.next_index += 1
    node.save_state(guards={"cluster_id": None})


def require_members(cluster: Cluster, node: Node) -> None:
    """Raise `ActionFailed` if a cluster would have too few members without this one."""
    remaining = cluster.members().exclude(pk=node.pk).exclude(status=Node.Status.DELETING).count()
    require_left(bounds_of(cluster), remaining)


def reduce_desired_capacity(cluster: Cluster, data: Data) -> None:
    """Reduce the desired capacity of a cluster that lost a node, unless its policies decided to replace the node."""
    if data.get("deletion", {}).get("reduce_desired_capacity", True):
        cluster.desired_capacity = max(cluster.desired_capacity - 1, cluster.min_size)


def leave(node: Node) -> None:
    """Remove a node from its cluster. Raises: `ConcurrentTransition` if another action removed it first."""
    member_of = node.cluster_id
    node.cluster, node.index = None, NO_INDEX
    node.save_state(guards={"cluster_id": member_of})
