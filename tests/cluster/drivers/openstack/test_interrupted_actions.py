"""Actions on single servers of an OpenStack cloud, interrupted while Nova continues the operation."""

import re
from typing import Any

import pytest
from pytest_django import Settings

from actions.types.base import ActionContext, ActionType, Recovery, make
from cluster.drivers.ownership import acting_for
from cluster.operations.synchronization import synchronize
from tests.cluster.drivers.openstack.test_pending_servers import WITHOUT_HOST
from tests.cluster.emulator.server import Emulator

pytestmark = pytest.mark.django_db
KINDS = pytest.mark.parametrize(
    ("kind", "remaining"), [("build", ["ACTIVE"]), ("rebuild", ["ACTIVE"]), ("delete_server", [])]
)


class Stopped(BaseException):
    pass


def interrupt(kind: str, emulator: Emulator, server: str) -> tuple[ActionType, ActionContext]:
    """Interrupt an action after Nova began, and return it and the context of the attempt that recovers it."""
    if kind == "build":
        emulator.nova.servers[server] |= WITHOUT_HOST
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
    """Return the operations requested from Nova without deletions, which are idempotent."""
    return [line for line in emulator.requests if re.match(r"POST .*/servers(/[^/]+/action)?$", line)]


def statuses(emulator: Emulator) -> list[str]:
    return [one["status"] for one in emulator.nova.servers.values()]


@pytest.fixture(autouse=True)
def pending_state_enabled(settings: Settings) -> None:
    settings.USE_PENDING_STATE = True


@KINDS
def test_aborted_action_waits_for_the_operation_of_nova(
    emulator: Emulator, server: str, kind: str, remaining: list[str]
) -> None:
    action, _ = interrupt(kind, emulator, server)
    with acting_for("action", 1):
        assert action.abort() is False
    assert statuses(emulator) == remaining
    assert len(requested_operations(emulator)) == (kind != "delete_server")


@KINDS
def test_next_attempt_resumes_the_operation_of_nova(
    emulator: Emulator, server: str, kind: str, remaining: list[str]
) -> None:
    _, context = interrupt(kind, emulator, server)
    with acting_for("action", 2):
        action = make(kind, {"resource_id": server}, context)
        assert action.recover() is Recovery.AGAIN
        action.execute()
    assert statuses(emulator) == remaining
    assert len(requested_operations(emulator)) == (kind != "delete_server")
