"""Abort, recovery and revert of one action."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings

from actions.engine import execution
from actions.engine.leases import CurrentState
from actions.models import Action, ActionEvent
from actions.types.base import DONE, ActionFailed, ActionType, Outcome, Recovery
from actions.types.nop import Nop
from tests.builders import make_node, make_plan, make_server
from watcher_site.database.queries import Bound

pytestmark = pytest.mark.django_db


class FakeLease:
    """A lease whose state the test decides."""

    host = "here"
    owner = None
    request_id = plan_uuid = traceparent = ""
    control: str | None = None

    def __init__(self, cancelling: bool = False, held: bool = True, lost: bool = False) -> None:
        self.cancelling, self.held, self.lost = cancelling, held, lost

    def hold(self, has_begun: bool) -> Bound:
        return Bound("SELECT 1" if self.held else "SELECT 1 WHERE 1 = 0", [])

    def look(self, action: Action) -> CurrentState:
        return CurrentState(
            action.values_read["state"],
            action.values_read["attempt"],
            self.control,
            is_held=not self.lost,
            is_being_cancelled=self.cancelling,
        )


class Long(Nop):
    """An action that calls its checkpoint once."""

    def execute(self) -> Outcome:
        self.context.checkpoint()
        return DONE


@pytest.fixture
def behave(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Replace methods of nop actions, which call a checkpoint in execute that always makes its query."""
    monkeypatch.setattr(settings, "POLL_INTERVAL", 0)

    def change(**methods: Any) -> None:
        monkeypatch.setattr("watcher_site.plugins.load", lambda _: {"nop": type("Changed", (Long,), methods)})

    change()
    return change


def answer(value: object) -> Callable[..., object]:
    return lambda self: value


def failing(error: Exception) -> Callable[..., object]:
    def method(self: object) -> None:
        raise error

    return method


def make_action(state: str = "PENDING") -> Action:
    plan = make_plan({"a": []}, state="ONGOING")
    plan.actions.update(state=state, attempt=0 if state == "PENDING" else 1)
    return plan.actions.get()


def reload(action: Action) -> Action:
    return Action.objects.get(pk=action.pk)


def phases(action: Action) -> list[tuple[str, str | None]]:
    return list(action.events.values_list("event", "result"))


@pytest.mark.parametrize(
    ("method", "state", "message", "result"),
    [
        (answer(True), "CANCELLED", "Action was cancelled with its action plan.", "Success"),
        (answer(False), "SUCCEEDED", None, "Success"),
        (failing(ActionFailed("no way back")), "FAILED", "Action failed in abort: no way back", "Error"),
        (failing(KeyError("secret")), "FAILED", "Action failed in abort: KeyError", "Error"),
    ],
)
def test_result_of_abort_decides_the_state(
    behave: Callable[..., None], method: object, state: str, message: str | None, result: str
) -> None:
    behave(abort=method)
    action = make_action()
    assert execution.execute(action, FakeLease(cancelling=True))
    assert (reload(action).state, reload(action).status_message) == (state, message)
    assert phases(action) == [("pre_condition", "Success"), ("execute", "Cancelled"), ("abort", result)]


def test_action_without_checkpoint_completes_under_a_cancelled_plan() -> None:
    action = make_action()
    assert execution.execute(action, FakeLease(cancelling=True))
    assert reload(action).state == "SUCCEEDED"


def test_action_does_not_start_without_the_lease_of_its_plan() -> None:
    action = make_action()
    assert not execution.execute(action, FakeLease(held=False))
    assert reload(action).state == "PENDING"
    assert phases(action) == []


def test_worker_that_lost_its_lease_writes_no_outcome(behave: Callable[..., None]) -> None:
    action = make_action()
    assert not execution.execute(action, FakeLease(lost=True))
    assert reload(action).state == "ONGOING"


def test_slow_worker_cannot_overwrite_a_later_attempt(behave: Callable[..., None]) -> None:
    action = make_action()

    def replace(self: object) -> Outcome:
        successor = reload(action)
        successor.begin_again()
        successor.save_state()
        return DONE

    behave(execute=replace)
    assert not execution.execute(action, FakeLease())
    assert (reload(action).state, reload(action).attempt) == ("ONGOING", 2)


def test_message_of_an_unexpected_error_contains_only_its_class_name(behave: Callable[..., None]) -> None:
    behave(execute=failing(KeyError("secret")))
    action = make_action()
    execution.execute(action, FakeLease())
    assert reload(action).status_message == "Action failed in execute: KeyError"
    assert action.events.get(event="execute").details == "KeyError"


def test_recovery_that_finds_the_action_done_succeeds(behave: Callable[..., None]) -> None:
    behave(recover=answer(Recovery.DONE), execute=failing(AssertionError()))
    action = make_action("ONGOING")
    assert execution.recover(action, FakeLease())
    assert reload(action).state == "SUCCEEDED"
    assert phases(action) == [("recover", "Success")]


def test_recovery_executes_a_repeatable_action_again() -> None:
    action = make_action("ONGOING")
    assert execution.recover(action, FakeLease())
    assert (reload(action).state, reload(action).attempt) == ("SUCCEEDED", 2)
    assert phases(action) == [("recover", "Success"), ("execute", "Success"), ("post_condition", "Success")]


def test_failed_recovery_fails_the_action_with_the_reason(behave: Callable[..., None]) -> None:
    behave(recover=failing(ActionFailed("half done")))
    action = make_action("ONGOING")
    assert execution.recover(action, FakeLease())
    assert (reload(action).state, reload(action).status_message) == ("FAILED", "Action failed in recover: half done")


def test_recovery_under_a_cancelled_plan_does_not_execute_the_action(behave: Callable[..., None]) -> None:
    behave(execute=failing(AssertionError()))
    action = make_action("ONGOING")
    assert execution.recover(action, FakeLease(cancelling=True))
    assert reload(action).state == "CANCELLED"


def test_recovery_repeats_the_abort_of_a_lost_worker() -> None:
    action = make_action("CANCELLING")
    assert execution.recover(action, FakeLease(cancelling=True))
    assert reload(action).state == "CANCELLED"


@pytest.mark.parametrize(
    ("state", "cancelling", "methods", "outcome"),
    [
        ("ONGOING", False, {"recover": answer(Recovery.AGAIN)}, "SUCCEEDED"),
        ("ONGOING", False, {"recover": answer(Recovery.DONE)}, "SUCCEEDED"),
        ("ONGOING", False, {"recover": failing(ActionFailed("half done"))}, "FAILED"),
        ("ONGOING", True, {"recover": answer(Recovery.AGAIN)}, "CANCELLED"),
        ("CANCELLING", True, {"abort": answer(True)}, "CANCELLED"),
        ("CANCELLING", True, {"abort": answer(False)}, "SUCCEEDED"),
        ("CANCELLING", True, {"abort": failing(ActionFailed("stuck"))}, "FAILED"),
    ],
)
def test_recovery_closes_the_open_events_of_the_lost_worker(
    behave: Callable[..., None], state: str, cancelling: bool, methods: dict[str, object], outcome: str
) -> None:
    behave(**methods)
    action = make_action(state)
    left = ActionEvent.objects.create(action=action, event="execute", attempt=1)
    execution.recover(action, FakeLease(cancelling))
    closed = ActionEvent.objects.get(pk=left.pk)
    assert reload(action).state == outcome
    assert (closed.result, closed.details) == ("Error", "Its outcome was not recorded.")
    assert closed.finish_time
    assert not action.events.filter(finish_time=None).exists()


def test_action_that_finished_execute_before_the_cancel_succeeds(behave: Callable[..., None]) -> None:
    lease = FakeLease()

    def execute(self: ActionType) -> Outcome:
        lease.cancelling = True
        return DONE

    behave(execute=execute, post_condition=lambda self: self.context.checkpoint())
    action = make_action()
    assert execution.execute(action, lease)
    assert reload(action).state == "SUCCEEDED"
    assert phases(action) == [("pre_condition", "Success"), ("execute", "Success"), ("post_condition", "Success")]


@pytest.mark.parametrize(
    ("method", "result", "details"),
    [
        (answer(True), "Success", None),
        (failing(ActionFailed("gone")), "Error", "gone"),
    ],
)
def test_revert_keeps_the_state_and_records_an_event(
    behave: Callable[..., None], method: object, result: str, details: str | None
) -> None:
    behave(revert=method)
    action = make_action("SUCCEEDED")
    assert execution.revert(action, FakeLease())
    assert reload(action).state == "SUCCEEDED"
    assert list(action.events.values_list("event", "result", "details")) == [("revert", result, details)]


def test_recovery_of_a_type_without_recover_fails_the_action(behave: Callable[..., None]) -> None:
    behave(recover=ActionType.recover, execute=failing(AssertionError()))
    action = make_action("ONGOING")
    execution.recover(action, FakeLease())
    assert reload(action).state == "FAILED"


@pytest.mark.parametrize("work", [execution.recover, execution.revert])
def test_recover_and_revert_keep_the_operation_of_another_action(work: Callable[..., bool]) -> None:
    server = make_server(node=make_node("source"), task_state="powering-off", operation_owner="another")
    make_node("target")
    action = make_action("ONGOING" if work is execution.recover else "SUCCEEDED")
    names = {"resource_id": str(server.uuid), "source_node": "source", "destination_node": "target"}
    Action.objects.filter(pk=action.pk).update(
        action_type="migrate", input_parameters={"migration_type": "live", **names}
    )
    work(reload(action), FakeLease())
    assert type(server).objects.get(pk=server.pk).task_state == "powering-off"
