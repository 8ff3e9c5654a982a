"""How another server takes the place of a node's: one, whoever is killed at whatever line."""

from dataclasses import replace

from actions.types.clusters.nodes import NodeAction, delete_server, wanted
from cluster.drivers.base import CloudServer, NewServer, cloud
from cluster.foresight import foreseen_cloud
from cluster.models import ComputeNode, Node


def replace_server(action: NodeAction, node: Node, generation: int) -> CloudServer:
    """Have a node's server be of a generation: delete the one before, where that is still there, and create it.

    Args:
        generation: as it was decided, and saved, before anything was done.

    Raises:
        CloudError: the cloud did not do it. The node is left as it is, to be gone on with.
        ActionFailed: something else is done to the node.
    """
    if node.generation < generation:
        delete_server(node)
        action.change(node, node.expect, generation)
    return cloud().create_server(freed(wanted(node)), action.context.checkpoint)


def freed(server: NewServer) -> NewServer:
    """Return a server to be without the host that it was to be on, if that takes none: that may be what broke it."""
    if server.host and not takes_servers(server.host):
        return replace(server, host=None)
    return server


def takes_servers(host: str) -> bool:
    if model := foreseen_cloud():
        return any(is_taking(room.node) for room in model.rooms.named(host))
    return bool(ComputeNode.objects.present().taking_servers().filter(hostname=host).exists())


def is_taking(node: ComputeNode) -> bool:
    return node.status == node.Status.ENABLED and node.state == node.State.UP
