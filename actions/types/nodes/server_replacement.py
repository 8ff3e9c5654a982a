"""Replacement of a node's server, which creates one new server even if processes are killed in between."""

from dataclasses import replace

from actions.types.nodes.nodes import NodeAction, delete_server, wanted
from cluster.drivers.base import CloudServer, NewServer, cloud
from cluster.models import ComputeNode, Node
from cluster.simulated import foreseen_cloud


def replace_server(action: NodeAction, node: Node, generation: int) -> CloudServer:
    """Replace a node's server by that of a generation: delete the former server if it exists, and create the new one.

    Args:
        generation: as decided and saved before the replacement began.

    Raises:
        CloudError: the cloud did not do it. The node is left as it is, and the replacement can be continued.
        ActionFailed: another operation on the node is in progress.
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
        return any(is_taking(candidate.node) for candidate in model.capacities.named(host))
    return bool(ComputeNode.objects.present().taking_servers().filter(hostname=host).exists())


def is_taking(node: ComputeNode) -> bool:
    return node.status == node.Status.ENABLED and node.state == node.State.UP
