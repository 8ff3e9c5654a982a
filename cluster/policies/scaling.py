"""The scaling policy: the number of nodes by which a cluster grows or shrinks."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.utils import timezone

from cluster.models import Cluster, PolicyBinding
from cluster.policies import messages
from cluster.policies.base import PolicyCheck, PolicyRefused, PolicyType, When, seconds, section
from cluster.policies.sizes import MAX_NODES, MAX_PERCENT, AdjustmentType, Bounds, compute_change

IN, OUT = "CLUSTER_SCALE_IN", "CLUSTER_SCALE_OUT"
EVENTS = frozenset({IN, OUT})
# The keys of the decisions in the data of an action, and their signs.
DECISIONS = {IN: ("deletion", -1), OUT: ("creation", 1)}


class Scaling(PolicyType):
    name = "senlin.policy.scaling-1.0"
    description = "Sets the number of nodes of a scaling, and the time between two scalings."
    priority = 100
    targets = {When.BEFORE: EVENTS, When.AFTER: EVENTS}
    is_single = False
    schema = {
        "type": "object",
        "properties": {
            "event": {"enum": [IN, OUT], "description": "the action that the policy applies to"},
            "adjustment": section(
                "the size of a scaling that is requested without a count",
                type={
                    "enum": AdjustmentType.values,
                    "default": AdjustmentType.CHANGE_IN_CAPACITY.value,
                    "description": "the unit of the number: nodes to add or remove, nodes in total, or percent",
                },
                number={
                    "type": "number",
                    "minimum": 1,
                    "default": 1,
                    "description": f"the number of nodes, up to {MAX_NODES}, or the percentage, up to {MAX_PERCENT}",
                },
                min_step={
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_NODES,
                    "default": 1,
                    "description": "the minimum number of nodes that a percentage results in",
                },
                best_effort={
                    "type": "boolean",
                    "default": False,
                    "description": "whether a size beyond the cluster's limits is adjusted instead of refused",
                },
                cooldown=seconds("the time after a scaling in which another one is refused", 0),
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
            return messages.ADJUSTMENT_PERCENT.fill(number=MAX_PERCENT) if number > MAX_PERCENT else None
        if number > MAX_NODES:
            return messages.ADJUSTMENT_NODES.fill(number=MAX_NODES)
        return None if number == int(number) else messages.ADJUSTMENT_WHOLE.fill(type=kind)

    def pre_op(self, check: PolicyCheck) -> None:
        if check.action_type != self.spec["event"]:
            return
        self.require_cooled_down(check.binding)
        key, _ = DECISIONS[check.action_type]
        check.data[key] = {**check.data.get(key, {}), "count": self.count(check)}

    def require_still(self, check: PolicyCheck) -> None:
        """Check the cooldown again, as another action may have scaled the cluster since the decision."""
        if check.action_type == self.spec["event"]:
            self.require_cooled_down(check.binding)

    def require_cooled_down(self, binding: PolicyBinding) -> None:
        pause = timedelta(seconds=self.spec["adjustment"]["cooldown"])
        if binding.last_op and timezone.now() < binding.last_op + pause:
            raise PolicyRefused(messages.COOLDOWN.fill(name=binding.policy.name))

    def count(self, check: PolicyCheck) -> int:
        """Return the number of nodes to add or remove. Raises: `PolicyRefused` if it is 0 or exceeds the bounds."""
        _, sign = DECISIONS[check.action_type]
        size = check.cluster.members().count()
        count = check.inputs.get("count") or sign * self.change(size, sign)
        if count < 1:
            raise PolicyRefused(messages.INVALID_COUNT.fill(count=count, action=check.action_type))
        return abs(self.within_bounds(check.cluster, size, sign * count))

    def change(self, size: int, sign: int) -> int:
        """Return the change of the size of a cluster; negative if it shrinks."""
        adjustment = self.spec["adjustment"]
        kind, number = adjustment["type"], adjustment["number"]
        if kind != AdjustmentType.EXACT_CAPACITY:
            number *= sign
        return compute_change(size, kind, number, adjustment["min_step"])

    def within_bounds(self, cluster: Cluster, size: int, change: int) -> int:
        """Return the change that the bounds of the cluster allow. Raises: `PolicyRefused`."""
        bounds = Bounds(cluster.min_size, cluster.max_size)
        breach = bounds.find_breach(size + change)
        if breach is None:
            return change
        allowed = bounds.clamp(size + change) - size
        if self.spec["adjustment"]["best_effort"] and allowed * change > 0:
            return allowed
        raise PolicyRefused(breach)

    def post_op(self, check: PolicyCheck) -> None:
        if check.action_type == self.spec["event"]:
            PolicyBinding.objects.filter(pk=check.binding.pk).update(last_op=timezone.now())
