"""The scaling policy: by how many nodes a cluster grows or shrinks."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.utils import timezone

from cluster.models import Cluster, PolicyBinding
from cluster.policies.base import PolicyCheck, PolicyRefused, PolicyType, When, seconds, section
from cluster.policies.sizes import MOST_NODES, MOST_PERCENT, AdjustmentType, Bounds, change_of

IN, OUT = "CLUSTER_SCALE_IN", "CLUSTER_SCALE_OUT"
EVENTS = frozenset({IN, OUT})
# Under which key the decision stands, and which way it goes.
DECISIONS = {IN: ("deletion", -1), OUT: ("creation", 1)}


class Scaling(PolicyType):
    name = "senlin.policy.scaling-1.0"
    description = "How many nodes one scaling adds or removes, and how long after the last one."
    priority = 100
    targets = {When.BEFORE: EVENTS, When.AFTER: EVENTS}
    is_single = False
    schema = {
        "type": "object",
        "properties": {
            "event": {"enum": [IN, OUT], "description": "the action that it is about"},
            "adjustment": section(
                "the size of one scaling that is requested without a count",
                type={
                    "enum": AdjustmentType.values,
                    "default": AdjustmentType.CHANGE_IN_CAPACITY.value,
                    "description": "nodes that come or go, nodes that there are afterwards, or percent",
                },
                number={
                    "type": "number",
                    "minimum": 1,
                    "default": 1,
                    "description": f"how many: up to {MOST_NODES} nodes, or up to {MOST_PERCENT} percent",
                },
                min_step={
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MOST_NODES,
                    "default": 1,
                    "description": "how many nodes a percentage comes to at least",
                },
                best_effort={
                    "type": "boolean",
                    "default": False,
                    "description": "whether what goes beyond the cluster's bounds is cut to them, or else refused",
                },
                cooldown=seconds("how long after a scaling the next one is refused", 0),
            ),
        },
        "required": ["event"],
        "additionalProperties": False,
    }

    @classmethod
    def find_flaw(cls, spec: Mapping[str, Any]) -> str | None:
        adjustment = cls(spec).spec["adjustment"]
        kind, number = adjustment["type"], adjustment["number"]
        if kind == AdjustmentType.CHANGE_IN_PERCENTAGE:
            return f"adjustment.number: must not be above {MOST_PERCENT} percent." if number > MOST_PERCENT else None
        if number > MOST_NODES:
            return f"adjustment.number: must not be above {MOST_NODES} nodes."
        return None if number == int(number) else f"adjustment.number: must be a whole number for {kind}."

    def pre_op(self, check: PolicyCheck) -> None:
        if check.action_type != self.spec["event"]:
            return
        self.require_cooled_down(check.binding)
        key, _ = DECISIONS[check.action_type]
        check.data[key] = {**check.data.get(key, {}), "count": self.count(check)}

    def require_still(self, check: PolicyCheck) -> None:
        """Others may have scaled since it was decided."""
        if check.action_type == self.spec["event"]:
            self.require_cooled_down(check.binding)

    def require_cooled_down(self, binding: PolicyBinding) -> None:
        pause = timedelta(seconds=self.spec["adjustment"]["cooldown"])
        if binding.last_op and timezone.now() < binding.last_op + pause:
            raise PolicyRefused(f"Policy {binding.policy.name} cooldown is still in progress.")

    def count(self, check: PolicyCheck) -> int:
        """Return how many nodes come or go. Raises: `PolicyRefused`, if that is none, or leaves the bounds."""
        _, sign = DECISIONS[check.action_type]
        size = check.cluster.members().count()
        count = check.inputs.get("count") or sign * self.change(size, sign)
        if count < 1:
            raise PolicyRefused(f"Invalid count ({count}) for action '{check.action_type}'.")
        return abs(self.within_bounds(check.cluster, size, sign * count))

    def change(self, size: int, sign: int) -> int:
        """Return how many nodes more, or below zero fewer, a cluster of so many shall have."""
        adjustment = self.spec["adjustment"]
        kind, number = adjustment["type"], adjustment["number"]
        if kind != AdjustmentType.EXACT_CAPACITY:
            number *= sign
        return change_of(size, kind, number, adjustment["min_step"])

    def within_bounds(self, cluster: Cluster, size: int, change: int) -> int:
        """Return the change that the cluster's bounds allow. Raises: `PolicyRefused`."""
        bounds = Bounds(cluster.min_size, cluster.max_size)
        breach = bounds.find_breach(size + change)
        if breach is None:
            return change
        allowed = bounds.cut(size + change) - size
        if self.spec["adjustment"]["best_effort"] and allowed * change > 0:
            return allowed
        raise PolicyRefused(breach)

    def post_op(self, check: PolicyCheck) -> None:
        if check.action_type == self.spec["event"]:
            PolicyBinding.objects.filter(pk=check.binding.pk).update(last_op=timezone.now())
