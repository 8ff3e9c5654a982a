"""The scheduler of the embedded cloud: it counts the free capacity of nodes under locks, and chooses one.

Nodes also have rules for the size of one server, whatever is free: Placement's min_unit, max_unit and step_size.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cluster.drivers.base import NoValidHost, OperationRefused, ServerNotFound
from cluster.models import ComputeNode, Flavor, Server

UNITS = {"vcpus": "VCPUs", "memory": "MB of memory", "disk": "GB of disk"}
# By resource: ``min_unit``, ``max_unit`` and ``step_size``. A resource that is missing has no such rules.
AllocationUnits = Mapping[str, Mapping[str, int]]


def find_misfit(rules: AllocationUnits | None, size: Mapping[str, int]) -> str:
    """Return the rule that one server of this size breaks, or nothing; a resource that it does not use has no rule."""
    for resource, rule in (rules or {}).items():
        amount, unit = size[resource], UNITS[resource]
        if not amount:
            continue
        if amount > rule["max_unit"]:
            return f"at most {rule['max_unit']} {unit} for one server, not {amount}"
        if amount < rule["min_unit"]:
            return f"at least {rule['min_unit']} {unit} for one server, not {amount}"
        if amount % rule["step_size"]:
            return f"{unit} in steps of {rule['step_size']}, not {amount}"
    return ""


@dataclass(frozen=True)
class NodeCapacity:
    """A node and what is free on it, which is less than nothing where its capacity was reduced."""

    node: ComputeNode
    free: dict[str, float]

    def lack(self, needed: Mapping[str, int]) -> str | None:
        """Return what there is too little of, or nothing."""
        for resource, unit in UNITS.items():
            free = max(self.free[resource], 0)
            if needed[resource] > free:
                return f"{self.node.hostname} has {free:g} {unit} free of {needed[resource]} needed."
        return None

    def refuse(self, wanted: Mapping[str, int]) -> str | None:
        """Return the reason why no server of this size may be placed here, or None."""
        misfit = find_misfit(self.node.allocation_units, wanted)
        return f"{self.node.hostname} takes {misfit}." if misfit else self.lack(wanted)

    def suits(self, server: Server) -> bool:
        """Return whether the scheduler may move a server to this node, which is enabled."""
        return (
            self.node.state == ComputeNode.State.UP
            and self.node.pk != server.node_id
            and not self.refuse(read_size(server))
        )


def read_size(source: Server | Flavor) -> dict[str, int]:
    return {resource: getattr(source, resource) for resource in UNITS}


def require_growth(server: Server, flavor: Flavor, hostname: str) -> None:
    """Lock the node of a server, and raise `NoValidHost` if its capacity is too small for the server to grow."""
    [candidate] = lock_nodes(hostname)
    check_growth(server, flavor, candidate)


def check_growth(server: Server, flavor: Flavor, candidate: NodeCapacity) -> None:
    own = read_size(server)
    growth = {resource: max(wanted - own[resource], 0) for resource, wanted in read_size(flavor).items()}
    if misfit := find_misfit(candidate.node.allocation_units, read_size(flavor)):
        raise NoValidHost(f"{candidate.node.hostname} takes {misfit}.")
    if reason := candidate.lack(growth):
        raise NoValidHost(reason)


def lock_nodes(hostname: str | None, zone: str | None = None) -> list[NodeCapacity]:
    """Lock the nodes that may be chosen, always in the same order, and read what is free on them.

    The use is read by a statement of its own after the lock: what others reserved meanwhile is then seen.
    """
    nodes = ComputeNode.objects.present()
    wanted = nodes.filter(hostname=hostname) if hostname else nodes.filter(status=ComputeNode.Status.ENABLED)
    if zone:
        wanted = wanted.filter(zone=zone)
    locked = list(wanted.select_for_update(no_key=True).order_by("pk"))
    use = Server.objects.use_by_node(wanted)
    return [NodeCapacity(node, free_of(node, use.get(node.pk, {}))) for node in locked]


def find_host(server: Server, candidates: list[NodeCapacity]) -> str | None:
    """Return the host that the scheduler would choose for a server that has never run, or None."""
    zone = server.pinned_az
    try:
        return find_best(server, [candidate for candidate in candidates if zone in {"", candidate.node.zone}]).hostname
    except NoValidHost:
        return None


def find_host_of(uuid: str) -> str | None:
    """Return the host that `find_host` finds for the server of this UUID. Raises: `ServerNotFound`."""
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
    """Return the destination of a server, of a zone or of any, locked until the transaction ends.

    Raises:
        OperationRefused: the requested host is unknown, disabled, down, or the server's own.
        NoValidHost: it has not enough capacity, or no host has.
    """
    return choose_among(lock_nodes(hostname, zone), server, hostname)


def choose_among(candidates: list[NodeCapacity], server: Server, hostname: str | None) -> ComputeNode:
    return check_wanted(server, hostname, candidates) if hostname else find_best(server, candidates)


def check_wanted(server: Server, hostname: str, candidates: list[NodeCapacity]) -> ComputeNode:
    if not candidates:
        raise OperationRefused(f"Destination node {hostname} not found")
    node = candidates[0].node
    if node.status != ComputeNode.Status.ENABLED:
        raise OperationRefused(f"Destination node {hostname} is not in enabled state")
    if node.state != ComputeNode.State.UP:
        raise OperationRefused(f"Destination node {hostname} is down")
    if node.pk == server.node_id:
        raise OperationRefused(f"Instance {server.uuid} is already on {hostname}")
    if reason := candidates[0].refuse(read_size(server)):
        raise NoValidHost(reason)
    return node


def find_best(server: Server, candidates: list[NodeCapacity]) -> ComputeNode:
    """Return the node with the most free memory among those that are up and have enough capacity."""
    fitting = [candidate for candidate in candidates if candidate.suits(server)]
    if not fitting:
        raise NoValidHost()
    return max(fitting, key=lambda candidate: candidate.free["memory"]).node
