"""The servers of resources: what they are to be, and how they go."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from cluster.drivers.base import Checkpoint, NewServer, ServerNotFound, cloud
from cluster.models import Server, StackResource
from cluster.operations.servers import forget_unplaced
from cluster.simulated import foreseen_cloud
from cluster.stacks.names import server_name
from watcher_site.refusals import NotFound


def make_server(
    resource: StackResource,
    wanted: Mapping[str, Any],
    generation: int,
    checkpoint: Checkpoint,
    *,
    may_wait: bool = True,
) -> str:
    """Create the server of a generation, and return its UUID; repeated calls create no second server.

    Args:
        may_wait: whether it is PENDING if no host has capacity, and the site allows servers to be PENDING.

    Raises:
        CloudError: the cloud did not do it.
        WaitingForCapacity: it found no host, and is PENDING.
    """
    properties = wanted["properties"]
    server = NewServer(
        name=server_name(resource),
        flavor=properties["flavor"],
        token=resource.token(generation),
        image=properties["image"],
        metadata=properties["metadata"],
        zone=properties["availability_zone"],
        project=resource.stack.project_id,
        user=resource.stack.user_id,
        may_wait=may_wait,
    )
    return cloud().create_server(server, checkpoint).uuid


def change_metadata(server: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Set the metadata of a server where its properties differ. Raises: `CloudError`."""
    former = before.get("metadata") or {}
    if former != after["metadata"]:
        cloud().change_metadata(server, after["metadata"], sorted(set(former).difference(after["metadata"])))


def delete_server(server: str | None) -> None:
    """Delete a server, if it is there. Raises: `CloudError`."""
    if server:
        with suppress(ServerNotFound):
            cloud().delete_server(server)


def is_present(server: str) -> bool:
    """Return whether a server is there, be it as one that waits for capacity."""
    if model := foreseen_cloud():
        return server in model.stacks.servers
    return bool(Server.objects.present().filter(uuid=server).exists())


def forget_waiting(resource: StackResource, generation: int) -> None:
    """Delete the server of a generation if it is still PENDING. Only tables are read."""
    if foreseen_cloud():
        return  # What waits is not foreseen.
    for server in Server.objects.waiting().filter(token=resource.token(generation)):
        with suppress(NotFound):
            forget_unplaced(server)


def delete_made(resource: StackResource, generation: int) -> None:
    """Delete the server of a generation, if it is there, whether or not anybody wrote down which one it is."""
    found = cloud().find_created(server_name(resource), resource.token(generation))
    delete_server(found.uuid if found else None)
