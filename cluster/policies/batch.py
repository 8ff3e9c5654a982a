"""The batch policy: updates of a cluster's nodes in steps, so that enough of them stay in service."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Case
from django.db.models import When as Where

from cluster.models import Node
from cluster.policies import messages
from cluster.policies.base import PolicyCheck, PolicyRefused, PolicyType, When, seconds
from cluster.policies.sizes import MAX_NODES

UNLIMITED = -1


class Batch(PolicyType):
    name = "senlin.policy.batch-1.0"
    description = "Updates the nodes of a cluster in batches."
    priority = 200
    targets = {When.BEFORE: frozenset({"CLUSTER_UPDATE"})}
    schema = {
        "type": "object",
        "properties": {
            "min_in_service": {
                "type": "integer",
                "minimum": 0,
                "maximum": MAX_NODES,
                "default": 1,
                "description": "the minimum number of nodes that are in service at any time",
            },
            "max_batch_size": {
                "type": "integer",
                "minimum": UNLIMITED,
                "maximum": MAX_NODES,
                "default": UNLIMITED,
                "description": f"the maximum size of a batch; {UNLIMITED}: as many nodes as min_in_service allows",
            },
            "pause_time": seconds("the time between two batches", 60),
        },
        "additionalProperties": False,
    }

    @classmethod
    def find_flaw(cls, spec: Mapping[str, Any]) -> str | None:
        return messages.BATCH_ZERO.text if spec.get("max_batch_size") == 0 else None

    def pre_op(self, check: PolicyCheck) -> None:
        """Divide the nodes into steps if the profile changes. Other updates do not affect nodes."""
        if not check.inputs.get("new_profile_id") or check.inputs.get("profile_only"):
            return
        healthy_last = Case(Where(status=Node.Status.ACTIVE, then=1), default=0)
        members = check.cluster.members().order_by(healthy_last, "index", "pk").values_list("uuid", flat=True)
        check.data["update"] = {
            "pause_time": self.spec["pause_time"],
            "plan": self.steps([str(uuid) for uuid in members]),
        }

    def steps(self, nodes: list[str]) -> list[list[str]]:
        size = len(nodes) - self.spec["min_in_service"]
        if nodes and size < 1:
            raise PolicyRefused(messages.NODES_KEPT.fill(number=len(nodes), least=self.spec["min_in_service"]))
        if self.spec["max_batch_size"] != UNLIMITED:
            size = min(size, self.spec["max_batch_size"])
        return [nodes[start : start + size] for start in range(0, len(nodes), max(size, 1))]
