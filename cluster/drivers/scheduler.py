"""The scheduler of the embedded cloud, which computes the free capacity of locked nodes and chooses one.

Nodes also limit the size of a single server, by Placement's min_unit, max_unit and step_size.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cluster.drivers import messages
from cluster.drivers.base import NoValidHost, OperationRefused, ServerNotFound
from cluster.drivers.messages import UNITS
from cluster.models import ComputeNode, Flavor, Server

# ``min_unit``, ``max_unit`` and ``step_size`` by resource. A missing resource has no rules.
AllocationUnits = Mapping[str, Mapping[str, int]]


def find_broken_unit_rule(rules: AllocationUnits | None, size: Mapping[str, int]) -> str:
    """Return the rule that a server of this size breaks, or "". Resources that it does not use are not checked."""
    for resource, rule in (rules or {}).items():
        amount, unit = size[resource], UNITS[resource]
        if not amount:
            continue
        if amount > rule["max_unit"]:
            return messages.ABOVE_UNIT.fill(limit=rule["max_unit"], unit=unit, amount=amount)
        if amount < rule["min_unit"]:
            return messages.BELOW_UNIT.fill(limit=rule["min_unit"], unit=unit, amount=amount)
        if amount % rule["step_size"]:
            return messages.BESIDE_STEPS.fill(unit=unit, step=rule["step_size"], amount=amount)
    return ""


@dataclass(frozen=True)
class NodeCapacity:
    """The free capacity of a node by resource, negative if its capacity was reduced."""

    node: ComputeNode
    free: dict[str, float]

    def find_shortage(self, needed: Mapping[str, int]) -> str | None:
        """Return which resource is too scarce, or None."""
        for resource, unit in UNITS.items():
            free = max(self.free[resource], 0)
            if needed[resource] > free:
                return messages.SHORTAGE.fill(
                    node=self.node.hostname, free=f"{free:g}", unit=unit, needed=needed[resource]
                )
        return None

    def explain_refusal(self, demand: Mapping[str, int]) -> str | None:
        """Return why a server of this size cannot be placed here, or None."""
        if problem := find_broken_unit_rule(self.node.allocation_units, demand):
            return messages.OUTSIDE_UNITS.fill(node=self.node.hostname, rule=problem)
        return self.find_shortage(demand)

    def accepts(self, server: Server) -> bool:
        """Return whether the scheduler may move a server to this enabled node."""
        return (
            self.node.state == ComputeNode.State.UP
            and self.node.pk != server.node_id
            and not self.explain_refusal(read_size(server))
        )


def read_size(source: Server | Flavor) -> dict[str, int]:
    return {resource: getattr(source, resource) for resource in UNITS}


def require_growth(server: Server, flavor: Flavor, hostname: str) -> None:
    """Lock the node of a server, and raise `NoValidHost` if it lacks capacity for a resize to this flavor."""
    [candidate] = lock_nodes(hostname)
    check_growth(server, flavor, candidate)


def check_growth(server: Server, flavor: Flavor, candidate: NodeCapacity) -> None:
    current = read_size(server)
    growth = {resource: max(amount - current[resource], 0) for resource, amount in read_size(flavor).items()}
    if problem := find_broken_unit_rule(candidate.node.allocation_units, read_size(flavor)):
        raise NoValidHost(messages.OUTSIDE_UNITS.fill(node=candidate.node.hostname, rule=problem))
    if reason := candidate.find_shortage(growth):
        raise NoValidHost(reason)


def lock_nodes(hostname: str | None, zone: str | None = None) -> list[NodeCapacity]:
    """Lock the candidate nodes, always in the same order, and return their free capacity.

    A separate statement reads the use after the lock, so that it includes concurrent reservations.
    """
    nodes = ComputeNode.objects.present()
    candidates = nodes.filter(hostname=hostname) if hostname else nodes.filter(status=ComputeNode.Status.ENABLED)
    if zone:
        candidates = candidates.filter(zone=zone)
    locked = list(candidates.select_for_update(no_key=True).order_by("pk"))
    use = Server.objects.use_by_node(candidates)
    return [NodeCapacity(node, free_of(node, use.get(node.pk, {}))) for node in locked]


def find_host(server: Server, candidates: list[NodeCapacity]) -> str | None:
    """Return the host that the scheduler would choose for a server that never ran, or None."""
    zone = server.pinned_az
    try:
        return find_best(server, [candidate for candidate in candidates if zone in {"", candidate.node.zone}]).hostname
    except NoValidHost:
        return None


def find_host_of(uuid: str) -> str | None:
    """Return the result of `find_host` for the server with this UUID. Raises: `ServerNotFound`."""
    server = Server.objects.present().filter(uuid=uuid).first()
    if server is None:
        raise ServerNotFound(uuid)
    return find_host(server, read_free_capacities())


def read_free_capacities() -> list[NodeCapacity]:
    """Return the free capacity of the enabled nodes in two queries, without a lock."""
    nodes = ComputeNode.objects.present().filter(status=ComputeNode.Status.ENABLED)
    use = Server.objects.use_by_node(nodes)
    return [NodeCapacity(node, free_of(node, use.get(node.pk, {}))) for node in nodes.order_by("pk")]


def free_of(node: ComputeNode, used: Mapping[str, int]) -> dict[str, float]:
    return {resource: getattr(node, f"capacity_{resource}") - used.get(resource, 0) for resource in UNITS}


def choose_destination(server: Server, hostname: str | None, zone: str | None = None) -> ComputeNode:
    """Return the destination of a server, locked until the transaction ends.

    Args:
        hostname: the requested host; None for the best one.
        zone: restricts the choice to an availability zone.

    Raises:
        OperationRefused: the requested host is unknown, disabled, down, or the server's own.
        NoValidHost: the requested host, or every host, lacks capacity.
    """
    return choose_among(lock_nodes(hostname, zone), server, hostname)


def choose_among(candidates: list[NodeCapacity], server: Server, hostname: str | None) -> ComputeNode:
    return check_wanted(server, hostname, candidates) if hostname else find_best(server, candidates)


def check_wanted(server: Server, hostname: str, candidates: list[NodeCapacity]) -> ComputeNode:
    if not candidates:
        raise OperationRefused(messages.DESTINATION_NOT_FOUND.fill(node=hostname))
    node = candidates[0].node
    if node.status != ComputeNode.Status.ENABLED:
        raise OperationRefused(messages.DESTINATION_DISABLED.fill(node=hostname))
    if node.state != ComputeNode.State.UP:
        raise OperationRefused(messages.DESTINATION_DOWN.fill(node=hostname))
    if node.pk == server.node_id:
        raise OperationRefused(messages.ALREADY_THERE.fill(server=server.uuid, node=hostname))
    if reason := candidates[0].explain_refusal(read_size(server)):
        raise NoValidHost(reason)
    return node


def find_best(server: Server, candidates: list[NodeCapacity]) -> ComputeNode:
    """Return the node with the most free memory among those that are up and have enough capacity."""
    fitting = [candidate for candidate in candidates if candidate.accepts(server)]
    if not fitting:
        raise NoValidHost()
    return max(fitting, key=lambda candidate: candidate.free["memory"]).node
