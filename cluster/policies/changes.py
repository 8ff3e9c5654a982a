"""The size of a change: how many nodes a cluster gains or loses, and which."""

from cluster.policies.base import PolicyCheck

# Of actions on a single node, and of those that scale by one unless a number is said. All others say what they come to
# in their data, before they ask the policies.
BY_ONE = {"CLUSTER_SCALE_OUT": 1, "CLUSTER_SCALE_IN": -1, "NODE_CREATE": 1, "NODE_DELETE": -1}


def find_change(check: PolicyCheck) -> int:
    """Return the change of the number of nodes, negative for a loss: as decided by a policy, or else as requested."""
    if decided := check.data.get("creation", {}).get("count"):
        return int(decided)
    if decided := check.data.get("deletion", {}).get("count"):
        return -int(decided)
    return BY_ONE.get(check.action_type, 0) * int(check.inputs.get("count", 1))


def find_named(check: PolicyCheck) -> list[str]:
    """Return the UUIDs of the nodes that are to go, where it is known already which."""
    if check.node:
        return [str(check.node.uuid)]
    named: list[str] = check.data.get("deletion", {}).get("candidates", [])
    return named
