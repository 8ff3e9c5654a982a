"""build, rebuild, reset_state and delete_server on the embedded cloud: skips, failures and results."""

from typing import Any
from uuid import uuid4

import pytest
from pytest_django import Settings

from actions.types.base import DONE, ActionContext, ActionSkipException, ActionType, Answer, Recovery, make
from cluster.drivers.base import NoValidHost, OperationRefused
from cluster.drivers.ownership import acting_for
from cluster.models import Server
from tests.builders import make_node, make_server

pytestmark = pytest.mark.django_db
GONE = "4f1b1c8e-5d67-4d3a-9a53-1d0d9f2f8a11"


def action(kind: str, server: Server | str, context: ActionContext | None = None, **parameters: Any) -> ActionType:
    return make(kind, {"resource_id": str(getattr(server, "uuid", server)), **parameters}, context or ActionContext())


def reload(server: Server) -> Server:
    return Server.objects.get(pk=server.pk)


def pending_server(**columns: Any) -> Server:
    return make_server(node=None, state="pending", **columns)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [("build", {}), ("rebuild", {}), ("reset_state", {"state": "error"}), ("delete_server", {})],
)
def test_deleted_server_is_skipped(kind: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(ActionSkipException, match=f"^Instance {GONE} no longer exists$"):
        action(kind, GONE, **parameters).pre_condition()


@pytest.mark.parametrize(("kind", "parameters"), [("build", {}), ("rebuild", {}), ("reset_state", {"state": "error"})])
def test_server_deleted_at_the_start_cancels_the_action(kind: str, parameters: dict[str, Any]) -> None:
    outcome = action(kind, GONE, **parameters).execute()
    assert (outcome.answer, outcome.reason) == (Answer.CANCEL, f"Instance {GONE} no longer exists")


@pytest.mark.parametrize("kind", ["build", "rebuild"])
def test_pending_server_is_built_on_a_node_with_capacity(kind: str) -> None:
    node, server = make_node(), pending_server()
    begun = action(kind, server)
    begun.pre_condition()
    assert begun.execute() == DONE
    assert (reload(server).state, reload(server).node) == ("active", node)


@pytest.mark.parametrize("kind", ["build", "rebuild"])
def test_server_without_a_valid_host_stays_pending(settings: Settings, kind: str) -> None:
    settings.USE_PENDING_STATE = True
    server = pending_server()
    with pytest.raises(NoValidHost):
        action(kind, server).execute()
    assert reload(server).state == "pending"


def test_build_of_a_built_server_is_skipped() -> None:
    with pytest.raises(ActionSkipException, match="has been built already"):
        action("build", make_server(node=make_node())).pre_condition()


def test_built_server_is_rebuilt_on_its_node() -> None:
    node = make_node()
    server = make_server(node=node, state="error")
    assert action("rebuild", server).execute() == DONE
    assert (reload(server).state, reload(server).node) == ("active", node)


def test_completed_first_build_is_not_repeated_as_a_rebuild() -> None:
    make_node()
    server, data = pending_server(), dict[str, Any]()
    context = ActionContext(data=data, keep_data=data.update)
    action("rebuild", server, context).execute()
    assert action("rebuild", server, ActionContext(data=data)).recover() is Recovery.DONE


def test_pending_server_is_built_on_the_destination_node() -> None:
    make_node("roomy", memory=65536)
    node, server = make_node("made"), pending_server()
    assert action("rebuild", server, destination_node="made", expected_status="PENDING").execute() == DONE
    assert reload(server).node == node


def test_pending_server_is_not_built_on_a_node_other_than_the_destination(settings: Settings) -> None:
    settings.USE_PENDING_STATE = True
    make_node("roomy")
    make_node("made", memory=0)
    server = pending_server()
    with pytest.raises(NoValidHost, match="made has 0 MB of memory free of 2048 needed"):
        action("rebuild", server, destination_node="made").execute()
    assert reload(server).state == "pending"


def test_server_that_is_no_longer_pending_is_not_rebuilt() -> None:
    server = make_server(node=make_node(), image="own")
    rebuild = action("rebuild", server, image="other", expected_status="PENDING")
    with pytest.raises(ActionSkipException, match="is ACTIVE, and no longer PENDING"):
        rebuild.pre_condition()
    with pytest.raises(OperationRefused, match="has run before"):
        rebuild.execute()
    assert reload(server).image == "own"


def test_interrupted_rebuild_is_repeated() -> None:
    server, data = make_server(node=make_node()), dict[str, Any]()
    with acting_for("action", 1):
        action("rebuild", server, ActionContext(data=data, keep_data=data.update)).execute()
    assert action("rebuild", server, ActionContext(data=data)).recover() is Recovery.AGAIN


def test_reset_to_error_stores_the_reason_as_the_fault() -> None:
    server = pending_server()
    action("reset_state", server, state="error", reason="no room could be made").execute()
    assert (reload(server).state, reload(server).fault["message"]) == ("error", "no room could be made")


def test_server_that_is_no_longer_pending_is_not_reset() -> None:
    server = make_server(node=make_node())
    reset = action("reset_state", server, state="error", expected_status="PENDING")
    with pytest.raises(ActionSkipException, match="is ACTIVE, and no longer PENDING"):
        reset.pre_condition()
    with pytest.raises(OperationRefused, match="is ACTIVE, and no longer PENDING"):
        reset.execute()
    assert reload(server).state == "active"


def test_server_is_deleted() -> None:
    server = make_server(node=make_node())
    assert action("delete_server", server).execute() == DONE
    assert not Server.objects.present().exists()


def test_completed_deletion_is_not_repeated() -> None:
    assert action("delete_server", GONE).recover() is Recovery.DONE


class Stopped(BaseException):
    pass


def stop() -> None:
    raise Stopped


def proceed() -> None:
    """Do nothing at a checkpoint."""


def interrupted(kind: str) -> tuple[Server, ActionContext]:
    """Interrupt an action on a server during its operation, and return the server and the context."""
    node = make_node()
    server = make_server(node=node, state="error") if kind == "rebuild" else pending_server()
    if kind == "delete_server":
        server = make_server("old", node=node)
    checkpoints, data = iter([stop]), dict[str, Any]()
    context = ActionContext(checkpoint=lambda: next(checkpoints, proceed)(), data=data, keep_data=data.update)
    with acting_for("action", 1), pytest.raises(Stopped):
        action(kind, server, context).execute()
    assert reload(server).task_state
    return server, context


def test_reset_of_a_pending_server_is_skipped_if_a_node_has_capacity() -> None:
    make_node("full", vcpus=1)
    make_node("free")
    server = pending_server()
    words = f"^Instance {server.uuid} is not given up: free has capacity for it$"
    with pytest.raises(ActionSkipException, match=words):
        action("reset_state", server, state="error", expected_status="PENDING").pre_condition()


@pytest.mark.parametrize("columns", [{"vcpus": 1}, {"zone": "elsewhere"}, {"state": "down"}, {"status": "disabled"}])
def test_reset_of_a_pending_server_proceeds_if_no_node_has_capacity(columns: dict[str, Any]) -> None:
    make_node(**columns)
    action("reset_state", pending_server(pinned_az="nova"), state="error", expected_status="PENDING").pre_condition()


def test_reset_without_expected_status_ignores_free_capacity() -> None:
    make_node()
    action("reset_state", pending_server(), state="error").pre_condition()


INTERRUPTED = pytest.mark.parametrize(
    ("kind", "state_then"), [("build", "active"), ("rebuild", "active"), ("delete_server", None)]
)


def state(server: Server) -> str | None:
    return Server.objects.present().filter(pk=server.pk, task_state=None).values_list("state", flat=True).first()


@INTERRUPTED
def test_abort_completes_the_operation(kind: str, state_then: str | None) -> None:
    server, context = interrupted(kind)
    with acting_for("action", 1):
        assert action(kind, server, context).abort() is False
    assert state(server) == state_then


@INTERRUPTED
def test_interrupted_operation_is_completed_by_the_next_attempt(kind: str, state_then: str | None) -> None:
    server, context = interrupted(kind)
    with acting_for("action", 2):
        taken_up = action(kind, server, ActionContext(data=context.data))
        assert taken_up.recover() is Recovery.AGAIN
        taken_up.execute()
    assert state(server) == state_then


def test_abort_of_a_build_without_a_valid_host_raises() -> None:
    with pytest.raises(NoValidHost):
        action("build", pending_server()).abort()


@pytest.mark.parametrize("kind", ["migrate", "stop", "delete_server"])
def test_action_that_frees_capacity_is_skipped_if_no_server_is_pending_for_it(kind: str) -> None:
    node = make_node("here")
    make_node("there")
    server = make_server(node=node)
    needless = {
        "needed_for": [GONE, str(make_server("built", node=node).uuid)],
        **({"migration_type": "live", "source_node": "here"} if kind == "migrate" else {}),
    }
    with pytest.raises(ActionSkipException, match=f"^No capacity is needed: instance {GONE} no longer exists$"):
        action(kind, server, **needless).pre_condition()


@pytest.mark.parametrize("kind", ["migrate", "stop", "delete_server"])
def test_action_that_frees_capacity_proceeds_while_a_server_is_pending_for_it(kind: str) -> None:
    node = make_node("here")
    make_node("there")
    needed = {
        "needed_for": [str(uuid4()), str(pending_server().uuid)],
        **({"migration_type": "live", "source_node": "here"} if kind == "migrate" else {}),
    }
    action(kind, make_server("other", node=node), **needed).pre_condition()
