"""The objects of the cloud as choices of forms: the value for the audit, and its label."""

from collections.abc import Callable

from cluster.models import ComputeNode, HostAggregate, Pool, StorageNode, VolumeType

Choices = list[tuple[str, str]]


def compute_nodes() -> Choices:
    return [(node.hostname, describe_node(node)) for node in ComputeNode.objects.present()]


def describe_node(node: ComputeNode) -> str:
    """Return a node's name and zone, and what keeps it from taking servers, if anything does."""
    obstacles = [word for word in (node.status, node.state, node.power_state) if word in {"disabled", "down", "off"}]
    return ", ".join([f"{node.hostname} in {node.zone}", *map(str, obstacles)])


def storage_pools() -> Choices:
    return [(name, name) for name in Pool.objects.present().values_list("name", flat=True)]


def volume_types() -> Choices:
    return [(name, name) for name in VolumeType.objects.present().values_list("name", flat=True)]


def host_aggregates() -> Choices:
    return [(name, name) for name in HostAggregate.objects.present().values_list("name", flat=True)]


def zones() -> Choices:
    """Return the availability zones of compute and of storage nodes."""
    models = (ComputeNode, StorageNode)
    found = {zone for model in models for zone in model.objects.present().order_by().values_list("zone", flat=True)}
    return [(zone, zone) for zone in sorted(found)]


# By the ``format`` that a strategy's schema gives to a text.
FORMATS: dict[str, Callable[[], Choices]] = {
    "compute-node": compute_nodes,
    "storage-pool": storage_pools,
    "volume-type": volume_types,
}
