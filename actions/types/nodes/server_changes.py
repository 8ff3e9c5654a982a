"""Changes of a node's server: the operations that recover it, replacement, and the change to another profile.

A replacement creates one new server, even if processes are killed in between.
"""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db.models import TextChoices

from actions.types.base import ActionFailed, ActionType
from actions.types.nodes.nodes import NodeAction, delete_server_of, wanted
from cluster.drivers import server_properties
from cluster.drivers.base import CloudServer, NewServer, cloud
from cluster.models import ComputeNode, Node, Profile
from cluster.simulated import simulated_cloud

PARTS = ("flavor", "image", "metadata", "availability_zone", *server_properties.NAMES)


class Operation(TextChoices):
    REBOOT = "REBOOT", "it is started anew"
    REBUILD = "REBUILD", "it is made anew from its image"
    RECREATE = "RECREATE", "it is deleted, and another one takes its place"


OPERATION = {
    "type": "string",
    "enum": Operation.values,
    "description": "The operation on the server. By default that of the health policy, or else `RECREATE`.",
}

CHECK = {"type": "boolean", "description": "Whether to check first, and to leave servers that run unchanged."}


class Way(StrEnum):
    RESIZE = "RESIZE"
    REBUILD = "REBUILD"
    RECREATE = "RECREATE"


def way_to(before: Mapping[str, Any], after: Mapping[str, Any]) -> Way | None:
    """Return the least change that turns a server of one spec into one of another, or None if they are equal."""
    differing = [part for part in PARTS if (before.get(part) or None) != (after.get(part) or None)]
    if not differing:
        return None
    if differing == ["flavor"]:
        return Way.RESIZE
    return Way.REBUILD if differing == ["image"] and after["image"] else Way.RECREATE


def change_server(action: NodeAction, node: Node, profile: Profile, way: Way, generation: int) -> None:
    """Change the server of a node to the description of a profile. Repeating it after a crash gives the same result.

    Raises:
        CloudError: the cloud did not do it.
        ActionFailed: another operation on the node is in progress.
    """
    checkpoint = action.context.checkpoint
    if way == Way.RECREATE:
        node.profile = profile
        node.physical_id = UUID(replace_server(action, node, generation).uuid)
    elif way == Way.REBUILD:
        cloud().rebuild_server(str(node.physical_id), profile.spec["image"], checkpoint)
    else:
        resize(str(node.physical_id), profile.spec["flavor"], action)


def replace_server(action: NodeAction, node: Node, generation: int) -> CloudServer:
    """Replace a node's server by that of a generation: delete the former server if it exists, and create the new one.

    Args:
        generation: as decided and saved before the replacement began.

    Raises:
        CloudError: the cloud did not do it. The node is left as it is, and the replacement can be continued.
        ActionFailed: another operation on the node is in progress.
    """
    if node.generation < generation:
        delete_server_of(node)
        action.change(node, node.begin_generation, generation)
    return cloud().create_server(freed(wanted(node)), action.context.checkpoint)


def freed(server: NewServer) -> NewServer:
    """Return a new server without its decided host if that host takes no servers: it may be the cause of the fault."""
    if server.host and not takes_servers(server.host):
        return replace(server, host=None)
    return server


def takes_servers(host: str) -> bool:
    if model := simulated_cloud():
        return any(is_taking(candidate.node) for candidate in model.capacities.named(host))
    return bool(ComputeNode.objects.present().schedulable().filter(hostname=host).exists())


def is_taking(node: ComputeNode) -> bool:
    return node.status == node.Status.ENABLED and node.state == node.State.UP


def resize(server: str, flavor: str, action: ActionType) -> None:
    """Resize a server, unless an earlier attempt did so and was lost before it was recorded."""
    current = cloud().reconcile(server, action.context.checkpoint)
    if current.flavor != cloud().find_flavor(flavor).name:
        cloud().resize(server, flavor, action.context.checkpoint)


def find_profile(uuid: str, *, lock: bool = False) -> Profile:
    """Return a profile, locked if it is to be used. Raises: `ActionFailed`, if there is none."""
    profiles = Profile.objects.present().filter(uuid=uuid)
    found: Profile | None = (profiles.select_for_update(no_key=True) if lock else profiles).first()
    if found is None:
        raise ActionFailed(f"new_profile_id: there is no profile {uuid}")
    return found
