"""Growth and shrinkage of clusters: the choice of nodes, their rows, and the actions on them."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any
from uuid import UUID, uuid4

from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.types import messages
from actions.types.base import ActionFailed, Data, DerivedAction
from actions.types.clusters.rules import bounds_of, require_left
from actions.types.nodes.nodes import node_action
from cluster.models import Cluster, Node
from cluster.policies.scale_in import choose_nodes_to_remove
from cluster.policies.sizes import Bounds

# Without a deletion policy.
DEFAULTS = {"destroy_after_deletion": True, "grace_period": 0, "reduce_desired_capacity": True}


def decide_growth(data: Data, count: int) -> None:
    """Choose the UUIDs of the new nodes, so that another execution of the action creates the same nodes."""
    creation = data.setdefault("creation", {})
    creation.setdefault("count", count)
    creation.setdefault("nodes", [str(uuid4()) for _ in range(creation["count"])])


def write_new_nodes(cluster: Cluster, data: Data, skipped: Iterable[str] = ()) -> int:
    """Write the rows of the new nodes, as members of the cluster, and return their number.

    Rows that an earlier action wrote are not written again. The nodes get their indexes in the order of the decision.
    The caller saves the cluster in the same transaction.
    """
    decided = data["creation"]["nodes"]
    existing = {str(uuid) for uuid in Node.objects.filter(uuid__in=decided).values_list("uuid", flat=True)}
    uuids = [uuid for uuid in decided if uuid not in existing.union(skipped)]
    placed = placements_of(data["creation"]["nodes"], data)
    nodes = [
        Node(
            uuid=UUID(uuid),
            name=name_of(cluster, uuid),
            profile=cluster.profile,
            cluster=cluster,
            project_id=cluster.project_id,
            user_id=cluster.user_id,
            trust_id=cluster.trust_id,
            index=cluster.next_index + number,
            data=placed.get(uuid, {}),
        )
        for number, uuid in enumerate(uuids)
    ]
    Node.objects.bulk_create(nodes, batch_size=1000)
    data["creation"]["written"] = uuids
    cluster.next_index += len(nodes)
    return len(nodes)


def remove_uncreated(cluster: Cluster, data: Data, skipped: Collection[str]) -> None:
    """Delete the rows of new nodes whose creation was skipped, and reduce the desired capacity of the cluster."""
    written = set(data["creation"].get("written", ())).intersection(skipped)
    uncreated = cluster.members().filter(uuid__in=written, status=Node.Status.INIT, physical_id=None)
    if uncreated.soft_delete():
        cluster.desired_capacity = cluster.members().count()


def placements_of(uuids: Sequence[str], data: Data) -> dict[str, Data]:
    """Return the decided placements of nodes' servers by the UUID of the node."""
    placements = data.get("placement", {}).get("placements", [])
    return {uuid: {"placement": placement} for uuid, placement in zip(uuids, placements, strict=False)}


def name_of(cluster: Cluster, uuid: str) -> str:
    """Return the name of a new node. It contains the UUID, so no two nodes have the same name."""
    return f"{cluster.name[:240]}-{uuid[:8]}"


def creations(cluster: Cluster, data: Data, **options: Any) -> list[ProposedAction]:
    """Return the actions that create the servers of the new nodes."""
    return [
        ProposedAction("NODE_CREATE", {"resource_id": uuid, "resource_name": name_of(cluster, uuid)}, **options)
        for uuid in data["creation"]["nodes"]
    ]


def decide_shrinkage(
    cluster: Cluster,
    data: Data,
    count: int,
    find_excluded: Callable[[Cluster, str], Collection[str]],
    *,
    bounds: Bounds | None = None,
    **defaults: Any,
) -> None:
    """Choose the members that leave and how, so that another execution of the action removes the same members.

    Members that a rule in force excludes stay, and other members leave instead if there are any.

    Args:
        find_excluded: returns the UUIDs of the members for which rules in force exclude an action type.
        bounds: the new bounds of the cluster's size, if they change.
        defaults: values that replace those of `DEFAULTS`, for decisions that no policy made.

    Raises:
        ActionFailed: the cluster would be too small, or all members are excluded.
    """
    deletion = data.setdefault("deletion", {})
    deletion.setdefault("count", count)
    kind = kind_of({**DEFAULTS, **defaults, **deletion})
    if "candidates" not in deletion:
        members = cluster.members().exclude(uuid__in=find_excluded(cluster, kind))
        deletion["candidates"] = choose_nodes_to_remove(members, deletion["count"], zones=deletion.get("zones"))
    data["deletion"] = {**DEFAULTS, **defaults, **deletion}
    if deletion["count"] and not deletion["candidates"] and find_excluded(cluster, kind):
        raise ActionFailed(messages.ALL_EXCLUDED.fill(action_type=kind, cluster=cluster.uuid))
    require_left(bounds or bounds_of(cluster), cluster.members().count() - len(deletion["candidates"]))


def find_leaving(cluster: Cluster, data: Data) -> list[Node]:
    """Return the members to remove that still exist, in the order of the decision.

    Raises:
        ActionFailed: one of them is no longer a member.
    """
    return find_members(cluster, data["deletion"]["candidates"])


def find_members(cluster: Cluster, uuids: Sequence[str]) -> list[Node]:
    """Return the existing ones of these nodes. Raises: `ActionFailed` if one is no longer a member."""
    nodes = {str(node.uuid): node for node in Node.objects.present().filter(uuid__in=uuids)}
    if foreign := [uuid for uuid, node in nodes.items() if node.cluster_id != cluster.pk]:
        raise ActionFailed(messages.NO_LONGER_MEMBER.fill(node=foreign[0], cluster=cluster.uuid))
    return [nodes[uuid] for uuid in uuids if uuid in nodes]


def find_size_left(cluster: Cluster, data: Data, skipped: Collection[str]) -> int:
    """Return the number of remaining members, including those whose removal was skipped. Raises: as `find_leaving`."""
    leaving = [node for node in find_leaving(cluster, data) if str(node.uuid) not in skipped]
    return int(cluster.members().count()) - len(leaving)


def shrink(cluster: Cluster, data: Data, skipped: Collection[str]) -> None:
    """Reduce the desired capacity to the remaining size, unless the policies decided to replace the members."""
    if data["deletion"]["reduce_desired_capacity"]:
        cluster.desired_capacity = find_size_left(cluster, data, skipped)


def shrink_again(cluster: Cluster, data: Data, skipped: Collection[str]) -> None:
    """Repeat `shrink` after the actions on nodes have ended, since skipped candidates are still members."""
    if data.get("deletion", {}).get("reduce_desired_capacity"):
        leaving = set(data["deletion"]["candidates"]).difference(skipped)
        cluster.desired_capacity = cluster.members().exclude(uuid__in=leaving).count()


def deletions(cluster: Cluster, data: Data) -> list[ProposedAction]:
    """Return the actions that remove the members of the decision."""
    deletion = data["deletion"]
    return [
        node_action(kind_of(deletion), node, delay=deletion["grace_period"]) for node in find_leaving(cluster, data)
    ]


def find_done(derived: Collection[DerivedAction], *kinds: str) -> list[str]:
    """Return the UUIDs of the nodes that actions of these types have succeeded with."""
    done = [action for action in derived if action.action_type in kinds and action.state == Action.State.SUCCEEDED]
    return [str(action.target) for action in done]


def kind_of(deletion: Data) -> str:
    """Return the type of the actions that remove the members of a deletion from the cluster."""
    return "NODE_DELETE" if deletion["destroy_after_deletion"] else "NODE_LEAVE"
