"""How another server takes the place of a node's: one, whoever is killed at whatever line."""

from actions.types.clusters.nodes import NodeAction, delete_server, wanted
from cluster.drivers.base import CloudServer, cloud
from cluster.models import Node


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
    return cloud().create_server(wanted(node), action.context.checkpoint)
