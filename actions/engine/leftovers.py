"""Operations in the cloud that an action began and that no worker waits for any more."""

from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from actions.models import Action
from cluster.drivers.base import Checkpoint, ServerNotFound, VolumeNotFound, cloud
from cluster.models import Server, Volume


def find_servers(action: Action) -> Sequence[UUID]:
    """Return the servers on which an operation of the action is under way."""
    return list(Server.objects.present().filter(**begun_by(action)).order_by("pk").values_list("uuid", flat=True))


def find_volumes(action: Action) -> Sequence[UUID]:
    """Return the volumes on which an operation of the action is under way."""
    return list(Volume.objects.present().filter(**begun_by(action)).order_by("pk").values_list("uuid", flat=True))


def begun_by(action: Action) -> dict[str, str]:
    return {"operation_owner__startswith": f"{action.uuid}/"}


def reconcile(action: Action, checkpoint: Checkpoint) -> None:
    """End each operation that an action left under way. Raises: `CloudError`."""
    for server in find_servers(action):
        with suppress(ServerNotFound):
            cloud().reconcile(str(server), checkpoint)
    for volume in find_volumes(action):
        with suppress(VolumeNotFound):
            cloud().reconcile_volume(str(volume), checkpoint)


def advise(action: Action) -> str:
    """Return the instructions to an administrator on the operations that an action left; empty without any."""
    left = [f"instance {server}" for server in find_servers(action)]
    left += [f"volume {volume}" for volume in find_volumes(action)]
    if not left:
        return ""
    return f"Check {', '.join(left)} in the cloud, and reset its state if it is still busy."
