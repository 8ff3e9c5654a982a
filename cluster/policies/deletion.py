"""The deletion policy: the choice of nodes that leave when a cluster shrinks, and how they leave."""

from cluster.policies.base import PolicyCheck, PolicyType, When, find_candidates, find_change, seconds
from cluster.policies.scale_in import Criteria, choose_nodes_to_remove


class Deletion(PolicyType):
    name = "senlin.policy.deletion-1.1"
    description = "Which nodes go when a cluster shrinks, and how."
    priority = 400
    reads = frozenset({"senlin.policy.scaling-1.0", "senlin.policy.zone_placement-1.0"})
    targets = {
        When.BEFORE: frozenset({"CLUSTER_SCALE_IN", "CLUSTER_DEL_NODES", "CLUSTER_RESIZE", "NODE_DELETE"}),
    }
    schema = {
        "type": "object",
        "properties": {
            "criteria": {
                "enum": Criteria.values,
                "default": Criteria.RANDOM.value,
                "description": "which go first of the nodes that are well",
            },
            "destroy_after_deletion": {
                "type": "boolean",
                "default": True,
                "description": "whether their servers are deleted, or stay as nodes without a cluster",
            },
            "grace_period": seconds("how long it is waited before they go", 0),
            "reduce_desired_capacity": {
                "type": "boolean",
                "default": True,
                "description": "whether fewer nodes are wanted afterwards",
            },
        },
        "additionalProperties": False,
    }

    def pre_op(self, check: PolicyCheck) -> None:
        count = -find_change(check)
        if count <= 0:
            return
        decided = check.data.get("deletion", {})
        kind = "NODE_DELETE" if self.spec["destroy_after_deletion"] else "NODE_LEAVE"
        members = check.cluster.members()
        candidates = find_candidates(check) or choose_nodes_to_remove(
            members.exclude(uuid__in=check.excluded(kind)), count, self.spec["criteria"], decided.get("zones")
        )
        # A requested deletion of a node always includes its server.
        unsaid = {"criteria", *(["destroy_after_deletion"] if check.action_type == "NODE_DELETE" else [])}
        how = {name: value for name, value in self.spec.items() if name not in unsaid}
        check.data["deletion"] = {**decided, "count": count, "candidates": candidates, **how}
