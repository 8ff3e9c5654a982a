"""Actions on single servers of an OpenStack cloud that are stopped while Nova is at work: Nova goes on by itself."""

import re
from typing import Any

import pytest
from pytest_django import Settings

from actions.types.base import ActionContext, ActionType, Recovery, make
from cluster.drivers.ownership import acting_for
from cluster.operations.synchronization import synchronize
from tests.cluster.drivers.openstack.test_building import LOST
from tests.cluster.emulator.server import Emulator

pytestmark = pytest.mark.django_db
KINDS = pytest.mark.parametrize(
    ("kind", "left"), [("build", ["ACTIVE"]), ("rebuild", ["ACTIVE"]), ("delete_server", [])]
)


class Stopped(BaseException):
    pass


def begun(kind: str, emulator: Emulator, server: str) -> tuple[ActionType, ActionContext]:
    """Begin an action, stop it when Nova has begun, and return it, and what one that takes it up knows."""
    if kind == "build":
        emulator.nova.servers[server] |= LOST
    synchronize()
    emulator.readings, stops = 6, True

    def stop() -> None:
        nonlocal stops
        if stops and any(one["OS-EXT-STS:task_state"] for one in emulator.nova.servers.values()):
            stops = False
            raise Stopped

    data = dict[str, Any]()
    context = ActionContext(checkpoint=stop, data=data, keep_data=data.update)
    action = make(kind, {"resource_id": server}, context)
    with acting_for("action", 1), pytest.raises(Stopped):
        action.execute()
    return action, ActionContext(data=data, keep_data=data.update)


def requested_operations(emulator: Emulator) -> list[str]:
    """Return the operations requested of Nova, but for deletions, which it takes as often as one likes."""
    return [line for line in emulator.requests if re.match(r"POST .*/servers(/[^/]+/action)?$", line)]


def statuses(emulator: Emulator) -> list[str]:
    return [one["status"] for one in emulator.nova.servers.values()]


@pytest.fixture(autouse=True)
def waiting_is_known(settings: Settings) -> None:
    settings.USE_PENDING_STATE = True


@KINDS
def test_what_is_aborted_is_waited_for(emulator: Emulator, server: str, kind: str, left: list[str]) -> None:
    action, _ = begun(kind, emulator, server)
    with acting_for("action", 1):
        assert action.abort() is False
    assert statuses(emulator) == left
    assert len(requested_operations(emulator)) == (kind != "delete_server")


@KINDS
def test_the_next_takes_up_what_nova_goes_on_with(emulator: Emulator, server: str, kind: str, left: list[str]) -> None:
    _, context = begun(kind, emulator, server)
    with acting_for("action", 2):
        action = make(kind, {"resource_id": server}, context)
        assert action.recover() is Recovery.AGAIN
        action.execute()
    assert statuses(emulator) == left
    assert len(requested_operations(emulator)) == (kind != "delete_server")
