"""Growth of clusters: new nodes are decided on, written, and created."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any
from uuid import UUID, uuid4

from actions.graph.proposals import ProposedAction
from actions.types.base import ActionFailed, Data
from cluster.models import Cluster, Node
from cluster.policies.sizes import Bounds


def bounds_of(cluster: Cluster) -> Bounds:
    return Bounds(cluster.min_size, cluster.max_size)


def require_size(bounds: Bounds, size: int) -> None:
    """Raises: `ActionFailed`, where a cluster within these bounds may not have so many nodes."""
    if breach := bounds.find_breach(size):
        raise ActionFailed(breach)


def decide_growth(data: Data, count: int) -> None:
    """Choose the UUIDs of the new nodes, so that another execution of the action creates the same nodes."""
    creation = data.setdefault("creation", {})
    creation.setdefault("count", count)
    creation.setdefault("nodes", [str(uuid4()) for _ in range(creation["count"])])


def write_new_nodes(cluster: Cluster, data: Data, left_out: Iterable[str] = ()) -> int:
    """Write the rows of the nodes that were decided on, as members of the cluster, and return how many these are.

    What continues a plan finds some there already.

    They get their indexes in this order; the caller saves the cluster in the same transaction.
    """
    decided = data["creation"]["nodes"]
    known = {str(uuid) for uuid in Node.objects.filter(uuid__in=decided).values_list("uuid", flat=True)}
    uuids = [uuid for uuid in decided if uuid not in known.union(left_out)]
    placed = placements_of(data["creation"]["nodes"], data)
    nodes = [
        Node(
            uuid=UUID(uuid),
            name=name_of(cluster, uuid),
            profile=cluster.profile,
            cluster=cluster,
            index=cluster.next_index + number,
            data=placed.get(uuid, {}),
        )
        for number, uuid in enumerate(uuids)
    ]
    Node.objects.bulk_create(nodes, batch_size=1000)
    data["creation"]["written"] = uuids
    cluster.next_index += len(nodes)
    return len(nodes)


def remove_uncreated(cluster: Cluster, data: Data, left_out: Collection[str]) -> None:
    """Delete the rows of new nodes whose creation was skipped, and reduce the desired capacity of the cluster."""
    written = set(data["creation"].get("written", ())).intersection(left_out)
    uncreated = cluster.members().filter(uuid__in=written, status=Node.Status.INIT, physical_id=None)
    if uncreated.soft_delete():
        cluster.desired_capacity = cluster.members().count()


def placements_of(uuids: Sequence[str], data: Data) -> dict[str, Data]:
    """Return by UUID what nodes keep of the decision where their servers are to be."""
    placements = data.get("placement", {}).get("placements", [])
    return {uuid: {"placement": placement} for uuid, placement in zip(uuids, placements, strict=False)}


def name_of(cluster: Cluster, uuid: str) -> str:
    """Return the name of a new node. It contains the UUID, so no two nodes have the same name."""
    return f"{cluster.name[:240]}-{uuid[:8]}"


def creations(cluster: Cluster, data: Data, **options: Any) -> list[ProposedAction]:
    """Return the actions that create the servers of the nodes that were decided on."""
    return [
        ProposedAction("NODE_CREATE", {"resource_id": uuid, "resource_name": name_of(cluster, uuid)}, **options)
        for uuid in data["creation"]["nodes"]
    ]
