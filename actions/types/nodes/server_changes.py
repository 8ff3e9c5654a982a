"""Change the server of a node to the description of another profile."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any
from uuid import UUID

from actions.types.base import ActionFailed, ActionType
from actions.types.nodes.nodes import NodeAction
from actions.types.nodes.server_replacement import replace_server
from cluster.drivers.base import cloud
from cluster.models import Node, Profile

PARTS = ("flavor", "image", "metadata")


class Way(StrEnum):
    RESIZE = "RESIZE"
    REBUILD = "REBUILD"
    RECREATE = "RECREATE"


def way_to(before: Mapping[str, Any], after: Mapping[str, Any]) -> Way | None:
    """Return how a server made from one spec comes to be as from another, with the least ado; none, if it is so."""
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


def resize(server: str, flavor: str, action: ActionType) -> None:
    """Resize a server, unless somebody who did so could not say it any more."""
    standing = cloud().reconcile(server, action.context.checkpoint)
    if standing.flavor != cloud().find_flavor(flavor).name:
        cloud().resize(server, flavor, action.context.checkpoint)


def find_profile(uuid: str, *, lock: bool = False) -> Profile:
    """Return a profile, locked if it is to be used. Raises: `ActionFailed`, if there is none."""
    profiles = Profile.objects.present().filter(uuid=uuid)
    found: Profile | None = (profiles.select_for_update(no_key=True) if lock else profiles).first()
    if found is None:
        raise ActionFailed(f"new_profile_id: there is no profile {uuid}")
    return found
