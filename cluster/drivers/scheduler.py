"""Where a server of the embedded cloud finds room, counted under locks."""

from collections.abc import Mapping

from cluster.drivers.base import NoValidHost, OperationRefused
from cluster.models import ComputeNode, Flavor, Server


def free_memory(node: ComputeNode) -> float:
    """Return the MB free on a node that was read `with_use`."""
    used: float = getattr(node, "used_memory")  # noqa: B009 (an annotation, unknown to the model)
    return node.capacity_memory - used


UNITS = {"vcpus": "VCPUs", "memory": "MB of memory", "disk": "GB of disk"}


def size(thing: Server | Flavor) -> dict[str, int]:
    return {resource: getattr(thing, resource) for resource in UNITS}


def lack(node: ComputeNode, needed: Mapping[str, int]) -> str | None:
    """Return what a node, read `with_use`, has too little of, or nothing."""
    for resource, unit in UNITS.items():
        free = getattr(node, f"capacity_{resource}") - getattr(node, f"used_{resource}")
        if needed[resource] > max(free, 0):
            return f"{node.hostname} has {max(free, 0):g} {unit} free of {needed[resource]} needed."
    return None


def require_growth(server: Server, flavor: Flavor, hostname: str) -> None:
    """Raise `NoValidHost` unless the node that a server is on, which stays locked, has room for it to grow."""
    own = size(server)
    growth = {resource: max(wanted - own[resource], 0) for resource, wanted in size(flavor).items()}
    [node] = lock_nodes(hostname)
    if reason := lack(node, growth):
        raise NoValidHost(reason)


def lock_nodes(hostname: str | None) -> list[ComputeNode]:
    """Lock the nodes that may be chosen, always in the same order, and read what is used on them.

    The use is read by a statement of its own after the lock: what others reserved meanwhile is then seen.
    """
    nodes = ComputeNode.objects.present()
    wanted = nodes.filter(hostname=hostname) if hostname else nodes.filter(status=ComputeNode.Status.ENABLED)
    locked = list(wanted.select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True))
    return list(ComputeNode.objects.filter(pk__in=locked).with_use().order_by("pk"))


def choose(server: Server, hostname: str | None) -> ComputeNode:
    """Return the node that the server shall go to, locked until the transaction ends.

    Raises:
        OperationRefused: the host that was asked for is unknown, disabled, down, or where the server is already.
        NoValidHost: it has no room, or none of them has.
    """
    nodes = lock_nodes(hostname)
    return check_wanted(server, hostname, nodes) if hostname else find_best(server, nodes)


def check_wanted(server: Server, hostname: str, nodes: list[ComputeNode]) -> ComputeNode:
    if not nodes:
        raise OperationRefused(f"Destination node {hostname} not found")
    node = nodes[0]
    if node.status != ComputeNode.Status.ENABLED:
        raise OperationRefused(f"Destination node {hostname} is not in enabled state")
    if node.state != ComputeNode.State.UP:
        raise OperationRefused(f"Destination node {hostname} is down")
    if node.pk == server.node_id:
        raise OperationRefused(f"Instance {server.uuid} is already on {hostname}")
    if reason := lack(node, size(server)):
        raise NoValidHost(reason)
    return node


def find_best(server: Server, nodes: list[ComputeNode]) -> ComputeNode:
    """Return the node with the most memory free among those that are up and have room."""
    fitting = [
        node
        for node in nodes
        if node.state == ComputeNode.State.UP and node.pk != server.node_id and not lack(node, size(server))
    ]
    if not fitting:
        raise NoValidHost()
    return max(fitting, key=free_memory)
