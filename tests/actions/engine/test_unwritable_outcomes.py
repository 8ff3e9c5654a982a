"""Outcomes that cannot be written, or that are lost with the database: no action stays ONGOING for ever."""

from collections.abc import Callable

import pytest
from django.db import DataError, InterfaceError, OperationalError
from tenacity import stop_after_attempt, wait_none

from actions.engine import execution
from actions.engine.execution import MAX_RECOVERIES
from actions.engine.storage import PERSISTENTLY
from actions.models import Action, ActionEvent
from actions.types.base import ActionFailed
from tests.actions.engine.test_interruptions import FakeLease, answer, behave, failing, make_action, phases, reload

pytestmark = pytest.mark.django_db
__all__ = ["behave"]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try three times to write an outcome, without waiting."""
    monkeypatch.setattr(PERSISTENTLY, "stop", stop_after_attempt(3))
    monkeypatch.setattr(PERSISTENTLY, "wait", wait_none())


def break_end(monkeypatch: pytest.MonkeyPatch, error: Exception, times: int) -> None:
    """Make the first ``times`` writes of an end fail."""
    left = [error] * times
    save_state = Action.save_state

    def save(self: Action, *records: ActionEvent, **options: object) -> None:
        if self.state in Action.FINAL and left:
            raise left.pop()
        save_state(self, *records, **options)

    monkeypatch.setattr(Action, "save_state", save)


@pytest.mark.parametrize("method", ["pre_condition", "execute", "post_condition"])
def test_message_is_stored_without_characters_that_the_database_refuses(
    behave: Callable[..., None], method: str
) -> None:
    behave(**{method: failing(ActionFailed("bad \ud800\0 name"))})
    action = make_action()
    assert execution.execute(action, FakeLease())
    assert (reload(action).state, reload(action).status_message) == (
        "FAILED",
        f"Action failed in {method}: bad ? name",
    )


@pytest.mark.parametrize("method", ["pre_condition", "execute", "post_condition"])
def test_system_exit_in_an_action_type_fails_the_action_and_not_the_worker(
    behave: Callable[..., None], method: str
) -> None:
    behave(**{method: failing(SystemExit(3))})
    action = make_action()
    assert execution.execute(action, FakeLease())
    assert (reload(action).state, reload(action).status_message) == (
        "FAILED",
        f"Action failed in {method}: SystemExit",
    )


def test_unwritable_outcome_fails_the_action(monkeypatch: pytest.MonkeyPatch, behave: Callable[..., None]) -> None:
    action = make_action()
    break_end(monkeypatch, DataError("secret"), 1)
    assert execution.execute(action, FakeLease())
    assert (reload(action).state, reload(action).status_message) == (
        "FAILED",
        "Action failed in post_condition: DataError",
    )
    assert not action.events.filter(finish_time=None).exists()


def test_unwritable_outcome_of_an_abort_fails_the_action(
    monkeypatch: pytest.MonkeyPatch, behave: Callable[..., None]
) -> None:
    action = make_action("CANCELLING")
    break_end(monkeypatch, DataError("secret"), 1)
    assert execution.recover(action, FakeLease(cancelling=True))
    assert (reload(action).state, reload(action).status_message) == ("FAILED", "Action failed in abort: DataError")


def test_unwritable_outcome_does_not_overwrite_a_later_attempt(
    monkeypatch: pytest.MonkeyPatch, behave: Callable[..., None]
) -> None:
    action = make_action()

    def replace(self: object) -> bool:
        successor = reload(action)
        successor.begin_again()
        successor.save_state()
        return True

    behave(execute=replace)
    break_end(monkeypatch, DataError("secret"), 1)
    assert not execution.execute(action, FakeLease())
    assert reload(action).state == "ONGOING"


@pytest.mark.parametrize("error", [OperationalError("away"), InterfaceError("closed")])
def test_outcome_is_written_after_the_database_returns(
    monkeypatch: pytest.MonkeyPatch, impatient: None, error: Exception
) -> None:
    action = make_action()
    break_end(monkeypatch, error, 2)
    assert execution.execute(action, FakeLease())
    assert reload(action).state == "SUCCEEDED"
    assert phases(action) == [("pre_condition", "Success"), ("execute", "Success"), ("post_condition", "Success")]


def test_action_stays_ongoing_if_the_database_stays_down(monkeypatch: pytest.MonkeyPatch, impatient: None) -> None:
    action = make_action()
    break_end(monkeypatch, OperationalError("away"), 3)
    with pytest.raises(OperationalError):
        execution.execute(action, FakeLease())
    assert reload(action).state == "ONGOING"


def test_action_that_loses_the_database_in_each_execute_fails_after_the_last_recovery(
    behave: Callable[..., None],
) -> None:
    behave(execute=failing(OperationalError("away")))
    action = make_action("ONGOING")
    for _ in range(MAX_RECOVERIES):
        with pytest.raises(OperationalError):
            execution.recover(reload(action), FakeLease())
    assert execution.recover(reload(action), FakeLease())
    assert (reload(action).state, reload(action).status_message) == (
        "FAILED",
        "Action failed in recover: It was interrupted 30 times. It was not done, and is not tried again.",
    )


def test_action_that_loses_the_database_in_each_recover_fails(behave: Callable[..., None]) -> None:
    behave(recover=failing(OperationalError("away")))
    action = make_action("ONGOING")
    for _ in range(MAX_RECOVERIES + 1):
        with pytest.raises(OperationalError):
            execution.recover(reload(action), FakeLease())
    assert execution.recover(reload(action), FakeLease())
    assert (reload(action).state, reload(action).status_message) == (
        "FAILED",
        "Action failed in recover: It was interrupted 31 times. Its outcome is not known.",
    )


def test_action_that_loses_the_database_in_each_abort_fails(behave: Callable[..., None]) -> None:
    behave(abort=failing(OperationalError("away")))
    action = make_action("CANCELLING")
    for _ in range(MAX_RECOVERIES):
        with pytest.raises(OperationalError):
            execution.recover(reload(action), FakeLease(cancelling=True))
    assert execution.recover(reload(action), FakeLease(cancelling=True))
    assert reload(action).state == "FAILED"


def test_late_recovery_keeps_the_open_events_of_a_later_attempt(behave: Callable[..., None]) -> None:
    late = make_action("ONGOING")
    successor = reload(late)
    successor.begin_again()
    successor.save_state()
    running = ActionEvent.objects.create(action=successor, event="execute", attempt=2)
    assert not execution.recover(late, FakeLease())
    assert ActionEvent.objects.get(pk=running.pk).finish_time is None


def test_system_exit_in_a_revert_is_recorded(behave: Callable[..., None]) -> None:
    behave(revert=failing(SystemExit(3)), execute=answer(True))
    action = make_action("SUCCEEDED")
    assert execution.revert(action, FakeLease())
    assert list(action.events.values_list("event", "result", "details")) == [("revert", "Error", "SystemExit")]
