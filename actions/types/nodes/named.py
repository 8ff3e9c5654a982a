"""Nodes that an action's inputs name."""

from typing import Any

from actions.types.base import UUID_SCHEMA, ActionFailed, ActionType
from cluster.models import Node
from cluster.policies.sizes import MOST_NODES

NODES: dict[str, Any] = {
    "type": "array",
    "items": UUID_SCHEMA,
    "minItems": 1,
    "maxItems": MOST_NODES,
    "uniqueItems": True,
}


def named_nodes(action: ActionType) -> list[Node]:
    """Return them as they are now, in the order of the inputs. Raises: `ActionFailed`, where there is no such node."""
    named = [uuid.lower() for uuid in action.input_parameters["nodes"]]
    present = Node.objects.present().select_related("cluster").filter(uuid__in=named)
    found = {str(node.uuid): node for node in present}
    if missing := [uuid for uuid in named if uuid not in found]:
        raise ActionFailed(f"Node {missing[0]} not found")
    return [found[uuid] for uuid in named]
