"""What an action comes to: how many nodes a cluster gets or loses, and which."""

from cluster.policies.base import PolicyCheck
from cluster.sizes import AdjustmentType, Bounds, change_of

# Of actions on a single node, and of those that scale by one unless a number is said.
BY_ONE = {"CLUSTER_SCALE_OUT": 1, "CLUSTER_SCALE_IN": -1, "NODE_CREATE": 1, "NODE_DELETE": -1}


def find_change(check: PolicyCheck) -> int:
    """Return how many nodes more, or below zero fewer, there will be: as decided already, else as asked for."""
    if decided := check.data.get("creation", {}).get("count"):
        return int(decided)
    if decided := check.data.get("deletion", {}).get("count"):
        return -int(decided)
    if named := find_named(check):
        return -len(named)
    if check.action_type == "CLUSTER_RESIZE":
        return find_resize(check)
    return BY_ONE.get(check.action_type, 0) * int(check.inputs.get("count") or 1)


def find_named(check: PolicyCheck) -> list[str]:
    """Return the UUIDs of the nodes that are to go, where they are decided on already, or named by who asks."""
    if check.action_type == "NODE_DELETE" and check.node:
        return [str(check.node.uuid)]
    named: list[str] = check.data.get("deletion", {}).get("candidates") or check.inputs.get("candidates", [])
    return named


def find_resize(check: PolicyCheck) -> int:
    inputs, cluster = check.inputs, check.cluster
    size = cluster.members().count()
    adjustment = inputs.get("adjustment_type", AdjustmentType.CHANGE_IN_CAPACITY)
    change = change_of(size, adjustment, inputs.get("number", 0), inputs.get("min_step", 1))
    if inputs.get("strict", True):
        return change
    bounds = Bounds(inputs.get("min_size", cluster.min_size), inputs.get("max_size", cluster.max_size))
    return bounds.cut(size + change) - size
