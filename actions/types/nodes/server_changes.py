"""Changes of a node's server: recovery, replacement, and the change to another profile.

A replacement creates only one new server, even if processes are killed.
"""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db.models import TextChoices

from actions.types import messages
from actions.types.base import ActionFailed, ActionType
from actions.types.nodes.nodes import NodeAction, delete_server_of, request_for
from cluster.drivers import server_properties
from cluster.drivers.base import CloudServer, NewServer, cloud
from cluster.models import ComputeNode, Node, Profile
from cluster.simulated import simulated_cloud

PARTS = ("flavor", "image", "metadata", "availability_zone", *server_properties.NAMES)


class Operation(TextChoices):
    REBOOT = "REBOOT", "it is rebooted"
    REBUILD = "REBUILD", "it is rebuilt from its image"
    RECREATE = "RECREATE", "it is deleted, and another one takes its place"


OPERATION = {
    "type": "string",
    "enum": Operation.values,
    "description": "The operation on the server. By default that of the health policy, or else `RECREATE`.",
}

CHECK = {"type": "boolean", "description": "Whether to check first, and to leave servers that run unchanged."}


class ServerChange(StrEnum):
    RESIZE = "RESIZE"
    REBUILD = "REBUILD"
    RECREATE = "RECREATE"


def find_server_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> ServerChange | None:
    """Return the smallest change from one description of a server to another, or None if they are equal."""
    differing = [part for part in PARTS if (before.get(part) or None) != (after.get(part) or None)]
    if not differing:
        return None
    if differing == ["flavor"]:
        return ServerChange.RESIZE
    return ServerChange.REBUILD if differing == ["image"] and after["image"] else ServerChange.RECREATE


def change_server(
    action: NodeAction, node: Node, profile: Profile, server_change: ServerChange, generation: int
) -> None:
    """Change the server of a node to the description of a profile. Repeating it after a crash gives the same result.

    Raises:
        CloudError: the cloud refused the change, or it failed.
        ActionFailed: another operation on the node is in progress.
    """
    checkpoint = action.context.checkpoint
    if server_change == ServerChange.RECREATE:
        node.profile = profile
        node.physical_id = UUID(replace_server(action, node, generation).uuid)
    elif server_change == ServerChange.REBUILD:
        cloud().rebuild_server(str(node.physical_id), profile.spec["image"], checkpoint)
    else:
        resize(str(node.physical_id), profile.spec["flavor"], action)


def replace_server(action: NodeAction, node: Node, generation: int) -> CloudServer:
    """Replace a node's server: delete the former server if it exists, and create the new one.

    Args:
        generation: the generation of the new server, which was saved before the replacement began.

    Raises:
        CloudError: the cloud refused the change, or it failed. The replacement can be continued.
        ActionFailed: another operation on the node is in progress.
    """
    if node.generation < generation:
        delete_server_of(node)
        action.change(node, node.begin_generation, generation)
    return cloud().create_server(without_unavailable_host(request_for(node)), action.context.checkpoint)


def without_unavailable_host(server: NewServer) -> NewServer:
    """Return a request without its host if that is down or disabled, as it may have caused the failure."""
    if server.host and not accepts_servers(server.host):
        return replace(server, host=None)
    return server


def accepts_servers(host: str) -> bool:
    if model := simulated_cloud():
        return any(is_schedulable(candidate.node) for candidate in model.capacities.named(host))
    return bool(ComputeNode.objects.present().schedulable().filter(hostname=host).exists())


def is_schedulable(node: ComputeNode) -> bool:
    return node.status == node.Status.ENABLED and node.state == node.State.UP


def resize(server: str, flavor: str, action: ActionType) -> None:
    """Resize a server, unless an unrecorded earlier attempt did so."""
    current = cloud().reconcile(server, action.context.checkpoint)
    if current.flavor != cloud().find_flavor(flavor).name:
        cloud().resize(server, flavor, action.context.checkpoint)


def find_profile(uuid: str, *, lock: bool = False) -> Profile:
    """Return a profile, optionally locked. Raises: `ActionFailed` if there is none."""
    profiles = Profile.objects.present().filter(uuid=uuid)
    profile: Profile | None = (profiles.select_for_update(no_key=True) if lock else profiles).first()
    if profile is None:
        raise ActionFailed(messages.NO_PROFILE.fill(profile=uuid))
    return profile
