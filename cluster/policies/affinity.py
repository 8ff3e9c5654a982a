"""The affinity policy: the distribution of a cluster's nodes over hosts."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import OuterRef, Q, Subquery, TextField
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce

from cluster.drivers.scheduler import find_broken_unit_rule
from cluster.models import Cluster, ComputeNode, Flavor, Server
from cluster.models.compute import RESOURCES
from cluster.policies import messages
from cluster.policies.base import PolicyCheck, PolicyRefused, PolicyType, When, find_change, section
from cluster.policies.sizes import MAX_NODES

ANTI_AFFINITY, SOFT_ANTI_AFFINITY = "anti-affinity", "soft-anti-affinity"


@dataclass
class Host:
    """A host for servers, with the number of the cluster's nodes on it and its capacity for more of them."""

    name: str
    zone: str
    nodes: int
    capacity: int

    @property
    def rank(self) -> tuple[int, int, str]:
        """Return the sort key of the choice; the smallest is chosen."""
        return self.nodes, -self.capacity, self.name


class Affinity(PolicyType):
    """Distributes nodes over hosts.

    It chooses a host for each new node, in the zone that an earlier policy chose, if any.
    """

    name = "senlin.policy.affinity-1.0"
    description = "Places the servers of a cluster on different hosts."
    priority = 310
    reads = frozenset({"senlin.policy.scaling-1.0"})
    targets = {When.BEFORE: frozenset({"CLUSTER_SCALE_OUT", "CLUSTER_RESIZE", "CLUSTER_RECOVER", "NODE_CREATE"})}
    schema = {
        "type": "object",
        "properties": {
            "servergroup": section(
                "the placement of servers relative to each other",
                policies={
                    "enum": [ANTI_AFFINITY, SOFT_ANTI_AFFINITY],
                    "default": ANTI_AFFINITY,
                    "description": "whether two servers never share a host, or only if it is necessary",
                },
            ),
            "availability_zone": {
                "type": "string",
                "minLength": 1,
                "maxLength": 255,
                "description": "the availability zone of the hosts (default: any zone)",
            },
        },
        "additionalProperties": False,
    }

    def pre_op(self, check: PolicyCheck) -> None:
        count = find_change(check)
        if count <= 0:
            return
        hosts = self.find_hosts(check)
        decided = check.data.get("placement", {}).get("placements") or [{} for _ in range(count)]
        placements = [self.choose_host(hosts, node_decision) for node_decision in decided]
        check.data["placement"] = {"count": count, "placements": placements}

    def choose_host(self, hosts: list[Host], decided: Mapping[str, Any]) -> dict[str, Any]:
        """Return the placement of a new node: the host with the fewest nodes, in the chosen zone, if any."""
        fitting = [
            candidate
            for candidate in hosts
            if self.accepts(candidate) and candidate.zone == decided.get("zone", candidate.zone)
        ]
        if not fitting:
            raise PolicyRefused(messages.INFEASIBLE.fill(reason=self.explain_shortage(decided.get("zone"))))
        best = min(fitting, key=lambda host: host.rank)
        best.nodes, best.capacity = best.nodes + 1, best.capacity - 1
        return {**decided, "zone": best.zone, "host": best.name}

    def accepts(self, host: Host) -> bool:
        return host.capacity > 0 and (host.nodes == 0 or self.spec["servergroup"]["policies"] == SOFT_ANTI_AFFINITY)

    def explain_shortage(self, zone: str | None) -> str:
        is_strict = self.spec["servergroup"]["policies"] == ANTI_AFFINITY
        if where := zone or self.spec.get("availability_zone"):
            return (messages.NO_SEPARATE_HOST_IN_ZONE if is_strict else messages.NO_HOST_IN_ZONE).fill(zone=where)
        return (messages.NO_SEPARATE_HOST if is_strict else messages.NO_HOST).text

    def find_hosts(self, check: PolicyCheck) -> list[Host]:
        """Return the hosts that are enabled and up, in four queries."""
        nodes = ComputeNode.objects.present().schedulable()
        if "availability_zone" in self.spec:
            nodes = nodes.filter(zone=self.spec["availability_zone"])
        use, have = Server.objects.use_by_node(nodes), find_spread(check)
        needed = find_node_size(check.cluster)
        return [
            Host(node.hostname, node.zone, have[node.hostname], find_capacity(node, use.get(node.pk, {}), needed))
            for node in nodes
        ]


def find_spread(check: PolicyCheck) -> Counter[str]:
    """Return the number of the cluster's nodes by host, including planned ones, but without the node to create."""
    servers = Server.objects.present().filter(uuid=OuterRef("physical_id")).order_by()
    host = Coalesce(
        Subquery(servers.values("node__hostname")[:1]), KT("data__placement__host"), output_field=TextField()
    )
    members = check.cluster.members().order_by()
    if check.node:
        members = members.exclude(pk=check.node.pk)
    return Counter(members.values_list(host, flat=True))


def find_node_size(cluster: Cluster) -> Mapping[str, int]:
    """Return the size of a node of the cluster by resource, zero if its flavor is not in the site's table."""
    flavor_name = cluster.profile.spec["flavor"]
    flavors = Flavor.objects.present().filter(Q(flavor_id=flavor_name) | Q(name=flavor_name))
    return flavors.values(*RESOURCES).first() or dict.fromkeys(RESOURCES, 0)


def find_capacity(node: ComputeNode, used: Mapping[str, int], needed: Mapping[str, int]) -> int:
    """Return the number of nodes of this size that fit on a host."""
    if find_broken_unit_rule(node.allocation_units, needed):
        return 0
    counts = [
        (getattr(node, f"capacity_{resource}") - used.get(resource, 0)) // needed[resource]
        for resource in RESOURCES
        if needed[resource]
    ]
    return int(min([*counts, MAX_NODES]))
