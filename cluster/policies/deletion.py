"""The deletion policy: the choice of nodes that leave when a cluster shrinks, and how they leave."""

from cluster.policies.base import PolicyCheck, PolicyType, When, find_candidates, find_change, seconds
from cluster.policies.scale_in import Criteria, choose_nodes_to_remove


class Deletion(PolicyType):
    name = "senlin.policy.deletion-1.1"
    description = "Chooses the nodes that are removed when a cluster shrinks, and how they are removed."
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
                "description": "the order in which healthy nodes are chosen",
            },
            "destroy_after_deletion": {
                "type": "boolean",
                "default": True,
                "description": "whether removed nodes are deleted with their servers, or kept without a cluster",
            },
            "grace_period": seconds("the time before the nodes are removed", 0),
            "reduce_desired_capacity": {
                "type": "boolean",
                "default": True,
                "description": "whether the desired capacity is reduced by the number of removed nodes",
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
