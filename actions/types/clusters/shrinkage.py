"""How actions make a cluster smaller: members that are decided on, and that are deleted or leave."""

from collections.abc import Collection, Sequence
from typing import Any

from actions.models import Action
from actions.proposals import ProposedAction
from actions.types.base import ActionFailed, DerivedAction
from actions.types.clusters.clusters import Data, node_action
from actions.types.clusters.growth import bounds_of
from actions.types.clusters.leaving import require_left
from cluster.candidates import choose
from cluster.models import Cluster, Node
from cluster.sizes import Bounds

# Where no policy says otherwise.
USUAL = {"destroy_after_deletion": True, "grace_period": 0, "reduce_desired_capacity": True}


def decide_shrinkage(cluster: Cluster, data: Data, count: int, bounds: Bounds | None = None, **usual: Any) -> None:
    """Decide which members go, and how: whoever executes the action again has the same ones go.

    Args:
        bounds: that the cluster will have, where they are not its own.
        usual: what is so where no policy decided it, in the place of `USUAL`.

    Raises:
        ActionFailed: the cluster may not have so few nodes.
    """
    deletion = data.setdefault("deletion", {})
    deletion.setdefault("count", count)
    if "candidates" not in deletion:
        deletion["candidates"] = choose(cluster.members(), deletion["count"], zones=deletion.get("zones"))
    data["deletion"] = {**USUAL, **usual, **deletion}
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
    """Have a cluster want no more nodes than it will have, unless its policies want the places filled."""
    if data["deletion"]["reduce_desired_capacity"]:
        cluster.desired_capacity = find_size_left(cluster, data, left_out)


def deletions(cluster: Cluster, data: Data) -> list[ProposedAction]:
    """Return the actions by which those go that were decided on."""
    deletion = data["deletion"]
    kind = "NODE_DELETE" if deletion["destroy_after_deletion"] else "NODE_LEAVE"
    return [node_action(kind, node, delay=deletion["grace_period"]) for node in find_going(cluster, data)]


def find_done(derived: Collection[DerivedAction], *kinds: str) -> list[str]:
    """Return the UUIDs of the nodes that actions of these types have succeeded with."""
    done = [one for one in derived if one.action_type in kinds and one.state == Action.State.SUCCEEDED]
    return [str(one.target) for one in done]
