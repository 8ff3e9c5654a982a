"""The action types of single servers on the embedded cloud: what skips, what fails, what they do."""

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


def again(server: Server) -> Server:
    return Server.objects.get(pk=server.pk)


def waiting(**columns: Any) -> Server:
    return make_server(node=None, state="pending", **columns)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [("build", {}), ("rebuild", {}), ("reset_state", {"state": "error"}), ("delete_server", {})],
)
def test_a_server_that_is_gone_is_skipped(kind: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(ActionSkipException, match=f"^Instance {GONE} no longer exists$"):
        action(kind, GONE, **parameters).pre_condition()


@pytest.mark.parametrize(("kind", "parameters"), [("build", {}), ("rebuild", {}), ("reset_state", {"state": "error"})])
def test_a_server_that_is_deleted_just_when_it_begins_is_given_up(kind: str, parameters: dict[str, Any]) -> None:
    outcome = action(kind, GONE, **parameters).execute()
    assert (outcome.answer, outcome.reason) == (Answer.CANCEL, f"Instance {GONE} no longer exists")


@pytest.mark.parametrize("kind", ["build", "rebuild"])
def test_a_server_that_waits_is_built_where_there_is_capacity(kind: str) -> None:
    node, server = make_node(), waiting()
    begun = action(kind, server)
    begun.pre_condition()
    assert begun.execute() == DONE
    assert (again(server).state, again(server).node) == ("active", node)


@pytest.mark.parametrize("kind", ["build", "rebuild"])
def test_a_server_that_finds_no_host_waits_on(settings: Settings, kind: str) -> None:
    settings.USE_PENDING_STATE = True
    server = waiting()
    with pytest.raises(NoValidHost):
        action(kind, server).execute()
    assert again(server).state == "pending"


def test_a_server_that_has_run_need_not_be_built() -> None:
    with pytest.raises(ActionSkipException, match="has been built already"):
        action("build", make_server(node=make_node())).pre_condition()


def test_a_server_that_has_run_is_rebuilt_where_it_is() -> None:
    node = make_node()
    server = make_server(node=node, state="error")
    assert action("rebuild", server).execute() == DONE
    assert (again(server).state, again(server).node) == ("active", node)


def test_a_first_build_that_came_to_its_end_is_not_followed_by_a_rebuild() -> None:
    make_node()
    server, data = waiting(), dict[str, Any]()
    context = ActionContext(data=data, keep_data=data.update)
    action("rebuild", server, context).execute()
    assert action("rebuild", server, ActionContext(data=data)).recover() is Recovery.DONE


def test_a_server_that_waits_is_built_where_capacity_was_freed() -> None:
    make_node("roomy", memory=65536)
    node, server = make_node("made"), waiting()
    assert action("rebuild", server, destination_node="made", expected_status="PENDING").execute() == DONE
    assert again(server).node == node


def test_a_server_that_waits_takes_only_the_capacity_that_was_freed(settings: Settings) -> None:
    settings.USE_PENDING_STATE = True
    make_node("roomy")
    make_node("made", memory=0)
    server = waiting()
    with pytest.raises(NoValidHost, match="made has 0 MB of memory free of 2048 needed"):
        action("rebuild", server, destination_node="made").execute()
    assert again(server).state == "pending"


def test_a_server_that_runs_meanwhile_is_not_rebuilt() -> None:
    server = make_server(node=make_node(), image="own")
    rebuild = action("rebuild", server, image="other", expected_status="PENDING")
    with pytest.raises(ActionSkipException, match="is ACTIVE, and no longer PENDING"):
        rebuild.pre_condition()
    with pytest.raises(OperationRefused, match="has run before"):
        rebuild.execute()
    assert again(server).image == "own"


def test_a_rebuild_that_was_interrupted_is_gone_on_with() -> None:
    server, data = make_server(node=make_node()), dict[str, Any]()
    with acting_for("action", 1):
        action("rebuild", server, ActionContext(data=data, keep_data=data.update)).execute()
    assert action("rebuild", server, ActionContext(data=data)).recover() is Recovery.AGAIN


def test_the_reason_for_an_error_can_be_read() -> None:
    server = waiting()
    action("reset_state", server, state="error", reason="no room could be made").execute()
    assert (again(server).state, again(server).fault["message"]) == ("error", "no room could be made")


def test_a_server_that_no_longer_waits_keeps_its_state() -> None:
    server = make_server(node=make_node())
    reset = action("reset_state", server, state="error", expected_status="PENDING")
    with pytest.raises(ActionSkipException, match="is ACTIVE, and no longer PENDING"):
        reset.pre_condition()
    with pytest.raises(OperationRefused, match="is ACTIVE, and no longer PENDING"):
        reset.execute()
    assert again(server).state == "active"


def test_a_server_is_deleted() -> None:
    server = make_server(node=make_node())
    assert action("delete_server", server).execute() == DONE
    assert not Server.objects.present().exists()


def test_a_deletion_that_came_to_its_end_is_done() -> None:
    assert action("delete_server", GONE).recover() is Recovery.DONE


class Stopped(BaseException):
    pass


def stop() -> None:
    raise Stopped


def proceed() -> None:
    """Nothing is in the way."""


def interrupted(kind: str) -> tuple[Server, ActionContext]:
    """Begin with a server, stop in the middle of it, and return what the action had kept."""
    node = make_node()
    server = make_server(node=node, state="error") if kind == "rebuild" else waiting()
    if kind == "delete_server":
        server = make_server("old", node=node)
    checkpoints, data = iter([stop]), dict[str, Any]()
    context = ActionContext(checkpoint=lambda: next(checkpoints, proceed)(), data=data, keep_data=data.update)
    with acting_for("action", 1), pytest.raises(Stopped):
        action(kind, server, context).execute()
    assert again(server).task_state
    return server, context


def test_a_server_that_would_find_a_host_by_now_is_not_given_up() -> None:
    make_node("full", vcpus=1)
    make_node("free")
    server = waiting()
    words = f"^Instance {server.uuid} is not given up: free has capacity for it$"
    with pytest.raises(ActionSkipException, match=words):
        action("reset_state", server, state="error", expected_status="PENDING").pre_condition()


@pytest.mark.parametrize("columns", [{"vcpus": 1}, {"zone": "elsewhere"}, {"state": "down"}, {"status": "disabled"}])
def test_a_server_that_no_host_has_capacity_for_is_given_up(columns: dict[str, Any]) -> None:
    make_node(**columns)
    action("reset_state", waiting(pinned_az="nova"), state="error", expected_status="PENDING").pre_condition()


def test_a_person_resets_the_state_of_a_server_that_would_find_a_host() -> None:
    make_node()
    action("reset_state", waiting(), state="error").pre_condition()


INTERRUPTED = pytest.mark.parametrize(
    ("kind", "state_then"), [("build", "active"), ("rebuild", "active"), ("delete_server", None)]
)


def state(server: Server) -> str | None:
    return Server.objects.present().filter(pk=server.pk, task_state=None).values_list("state", flat=True).first()


@INTERRUPTED
def test_what_is_aborted_comes_to_its_end(kind: str, state_then: str | None) -> None:
    server, context = interrupted(kind)
    with acting_for("action", 1):
        assert action(kind, server, context).abort() is False
    assert state(server) == state_then


@INTERRUPTED
def test_what_was_interrupted_is_taken_up_by_the_next(kind: str, state_then: str | None) -> None:
    server, context = interrupted(kind)
    with acting_for("action", 2):
        taken_up = action(kind, server, ActionContext(data=context.data))
        assert taken_up.recover() is Recovery.AGAIN
        taken_up.execute()
    assert state(server) == state_then


def test_a_build_that_finds_no_host_when_it_is_aborted_tells_so() -> None:
    with pytest.raises(NoValidHost):
        action("build", waiting()).abort()


@pytest.mark.parametrize("kind", ["migrate", "stop", "delete_server"])
def test_an_action_that_frees_capacity_is_skipped_when_nobody_waits_for_it_any_more(kind: str) -> None:
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
def test_an_action_that_frees_capacity_is_done_while_one_still_waits_for_it(kind: str) -> None:
    node = make_node("here")
    make_node("there")
    needed = {
        "needed_for": [str(uuid4()), str(waiting().uuid)],
        **({"migration_type": "live", "source_node": "here"} if kind == "migrate" else {}),
    }
    action(kind, make_server("other", node=node), **needed).pre_condition()
