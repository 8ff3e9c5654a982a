"""Shrinking of clusters: members are chosen, and are deleted or leave."""

from collections.abc import Collection, Sequence
from typing import Any

from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.types.base import ActionFailed, Data, DerivedAction
from actions.types.clusters.clusters import ClusterAction, kind_of, node_action
from actions.types.clusters.growth import bounds_of
from actions.types.nodes.leaving import require_left
from cluster.models import Cluster, Node
from cluster.policies.scale_in import choose_nodes_to_remove
from cluster.policies.sizes import Bounds

# Where no policy says otherwise.
USUAL = {"destroy_after_deletion": True, "grace_period": 0, "reduce_desired_capacity": True}


def decide_shrinkage(
    action: ClusterAction, cluster: Cluster, data: Data, count: int, bounds: Bounds | None = None, **usual: Any
) -> None:
    """Choose the members that leave and how, so that another execution of the action removes the same members.

    Members that a rule in force excludes stay, and other members leave in their place if there are any.

    Args:
        bounds: the new limits of the cluster's size, if they change.
        usual: defaults that override `USUAL`, for decisions that no policy made.

    Raises:
        ActionFailed: the cluster would be too small, or each member that could leave is excluded.
    """
    deletion = data.setdefault("deletion", {})
    deletion.setdefault("count", count)
    kind = kind_of({**USUAL, **usual, **deletion})
    if "candidates" not in deletion:
        members = cluster.members().exclude(uuid__in=action.find_excluded(cluster, kind))
        deletion["candidates"] = choose_nodes_to_remove(members, deletion["count"], zones=deletion.get("zones"))
    data["deletion"] = {**USUAL, **usual, **deletion}
    if deletion["count"] and not deletion["candidates"] and action.find_excluded(cluster, kind):
        raise ActionFailed(f"No node can go: exclusions keep {kind} from all members of cluster {cluster.uuid}.")
    require_left(bounds or bounds_of(cluster), cluster.members().count() - len(deletion["candidates"]))


def find_going(cluster: Cluster, data: Data) -> list[Node]:
    """Return those of the members that were decided on which are there still, in the order of the decision.

    Raises:
        ActionFailed: one of them is no member any more.
    """
    return find_members(cluster, data["deletion"]["candidates"])


def find_members(cluster: Cluster, uuids: Sequence[str]) -> list[Node]:
    """Return those of these nodes that are there still. Raises: `ActionFailed`, if one is no member any more."""
    found = {str(node.uuid): node for node in Node.objects.present().filter(uuid__in=uuids)}
    if strays := [uuid for uuid, node in found.items() if node.cluster_id != cluster.pk]:
        raise ActionFailed(f"Node {strays[0]}, which was to go, is no longer a member of cluster {cluster.uuid}.")
    return [found[uuid] for uuid in uuids if uuid in found]


def find_size_left(cluster: Cluster, data: Data, left_out: Collection[str]) -> int:
    """Return how many members there will be, with those that people left out. Raises: as `find_going`."""
    going = [node for node in find_going(cluster, data) if str(node.uuid) not in left_out]
    return int(cluster.members().count()) - len(going)


def shrink(cluster: Cluster, data: Data, left_out: Collection[str]) -> None:
    """Reduce the desired capacity to the remaining size, unless the policies decided to replace the members."""
    if data["deletion"]["reduce_desired_capacity"]:
        cluster.desired_capacity = find_size_left(cluster, data, left_out)


def shrink_again(cluster: Cluster, data: Data, left_out: Collection[str]) -> None:
    """Repeat `shrink` when the actions on nodes have ended: candidates that were skipped are still members."""
    if data.get("deletion", {}).get("reduce_desired_capacity"):
        going = set(data["deletion"]["candidates"]).difference(left_out)
        cluster.desired_capacity = cluster.members().exclude(uuid__in=going).count()


def deletions(cluster: Cluster, data: Data) -> list[ProposedAction]:
    """Return the actions by which those go that were decided on."""
    deletion = data["deletion"]
    return [node_action(kind_of(deletion), node, delay=deletion["grace_period"]) for node in find_going(cluster, data)]


def find_done(derived: Collection[DerivedAction], *kinds: str) -> list[str]:
    """Return the UUIDs of the nodes that actions of these types have succeeded with."""
    done = [one for one in derived if one.action_type in kinds and one.state == Action.State.SUCCEEDED]
    return [str(one.target) for one in done]
