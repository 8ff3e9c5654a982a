"""The zone placement policy: the distribution of a cluster's nodes over availability zones."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from cluster.models import ComputeNode
from cluster.policies import messages
from cluster.policies.base import PolicyCheck, PolicyRefused, PolicyType, When, find_candidates, find_change
from cluster.policies.scale_in import NEVER_CREATED, UNHEALTHY, Criteria, choose_nodes_to_remove, zone_expression

MAX_WEIGHT = 10_000
DEFAULT_WEIGHT = 100
TARGETS = frozenset({"CLUSTER_SCALE_OUT", "CLUSTER_SCALE_IN", "CLUSTER_RESIZE", "CLUSTER_RECOVER", "NODE_CREATE"})


class ZonePlacement(PolicyType):
    """Distributes nodes in proportion to the weights of the zones."""

    name = "senlin.policy.zone_placement-1.0"
    description = "Distributes the nodes of a cluster over availability zones."
    priority = 300
    reads = frozenset({"senlin.policy.scaling-1.0"})
    targets = {When.BEFORE: TARGETS}
    schema = {
        "type": "object",
        "properties": {
            "zones": {
                "type": "array",
                "minItems": 1,
                "maxItems": 100,
                "description": "the zones, each with a name and a weight, which is its share of the nodes",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "minLength": 1, "maxLength": 255},
                        "weight": {"type": "integer", "minimum": 1, "maximum": MAX_WEIGHT, "default": DEFAULT_WEIGHT},
                    },
                    "required": ["name"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["zones"],
        "additionalProperties": False,
    }

    @classmethod
    def find_flaw(cls, spec: Mapping[str, Any]) -> str | None:
        name, times = Counter(zone["name"] for zone in spec["zones"]).most_common(1)[0]
        return messages.ZONE_REPEATED.fill(name=name, number=times) if times > 1 else None

    def __init__(self, spec: Mapping[str, Any]) -> None:
        super().__init__(spec)
        self.weights = {zone["name"]: zone.get("weight", DEFAULT_WEIGHT) for zone in spec["zones"]}

    def pre_op(self, check: PolicyCheck) -> None:
        change = find_change(check)
        if change > 0:
            self.place_new_nodes(check, change)
        elif change < 0 and not find_candidates(check):
            self.choose_leaving_nodes(check, -change)

    def place_new_nodes(self, check: PolicyCheck, count: int) -> None:
        """Place each new node in the zone with the fewest nodes in proportion to its weight."""
        if any("host" in placement for placement in check.data.get("placement", {}).get("placements", [])):
            raise PolicyRefused(messages.INFEASIBLE.fill(reason=messages.HOSTS_BEFORE_ZONES.text))
        have, weights = self.find_spread(check), self.find_usable()
        placed_zones = []
        for _ in range(count):
            zone = min(weights, key=lambda name: (have[name] + 1) / weights[name])
            have[zone] += 1
            placed_zones.append(zone)
        zones = {zone: placed_zones.count(zone) for zone in dict.fromkeys(placed_zones)}
        check.data["creation"] = {**check.data.get("creation", {}), "count": count, "zones": zones}
        check.data["placement"] = {"count": count, "placements": [{"zone": zone} for zone in placed_zones]}

    def choose_leaving_nodes(self, check: PolicyCheck, count: int) -> None:
        """Choose the nodes that leave: unhealthy ones first, then nodes of the zones with a surplus."""
        members, have = check.cluster.members(), self.find_spread(check)
        unwell = members.filter(UNHEALTHY | NEVER_CREATED)
        first = choose_nodes_to_remove(unwell, count, Criteria.OLDEST_FIRST)
        leaving = Counter(
            zone or "" for zone in members.filter(uuid__in=first).order_by().values_list(zone_expression(), flat=True)
        )
        have.subtract(leaving)
        while leaving.total() < count and have.total() > 0:
            zone = max(have, key=lambda name: self.surplus(name, have[name]))
            have[zone] -= 1
            leaving[zone] += 1
        check.data["deletion"] = {**check.data.get("deletion", {}), "count": count, "zones": dict(leaving)}

    def surplus(self, zone: str, have: int) -> tuple[bool, float]:
        """Return the sort key of a zone. Nodes leave the zone with the largest key; unlisted zones come first."""
        return have > 0 and zone not in self.weights, have / self.weights.get(zone, 1)

    def find_spread(self, check: PolicyCheck) -> Counter[str]:
        """Return the number of the cluster's nodes by zone, without the node to create."""
        members = check.cluster.members()
        if check.node:
            members = members.exclude(pk=check.node.pk)
        return Counter(zone or "" for zone in members.order_by().values_list(zone_expression(), flat=True))

    def find_usable(self) -> dict[str, int]:
        """Return the weights of the zones with hosts that are enabled and up. Raises: `PolicyRefused`."""
        taking = ComputeNode.objects.present().schedulable()
        open_zones = set(taking.filter(zone__in=self.weights).order_by().values_list("zone", flat=True).distinct())
        usable = {name: weight for name, weight in self.weights.items() if name in open_zones}
        if not usable:
            reason = messages.ZONES_UNUSABLE.fill(zones=", ".join(self.weights))
            raise PolicyRefused(messages.INFEASIBLE.fill(reason=reason))
        return usable
