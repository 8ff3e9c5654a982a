"""Outcomes of execute: the state of the action, retries and their pauses."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from actions.engine import execution
from actions.models import Action
from actions.types.base import DONE, ActionType, Answer, Outcome
from actions.types.nop import Nop
from cluster.drivers.base import CloudBusy
from plans.models import ActionPlan
from tests.actions.engine.test_interruptions import FakeLease
from tests.builders import make_plan
from watcher_site.models import Service

pytestmark = pytest.mark.django_db
BUSY = Outcome(Answer.RETRY, "The pool is being rebuilt")


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    """Make the execute method of nop actions return or raise a value."""

    def change(answer: object) -> None:
        def execute(self: ActionType) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(Nop, "execute", execute)

    return change


def run(lease: FakeLease | None = None, **columns: Any) -> Action:
    plan: ActionPlan = make_plan({"a": []}, state="ONGOING")
    plan.actions.update(**columns)
    assert execution.execute(plan.actions.get(), lease or FakeLease())
    return Action.objects.get(action_plan=plan)


def phases(action: Action) -> list[tuple[str, str | None]]:
    return list(action.events.values_list("event", "result"))


@pytest.mark.parametrize(
    ("outcome", "state", "message"),
    [
        (DONE, "SUCCEEDED", None),
        (Outcome(Answer.OK, "easily"), "SUCCEEDED", None),
        (Outcome(Answer.ERROR, "no disk"), "FAILED", "Action failed in execute: no disk"),
        (Outcome(Answer.TIMEOUT, "no end in sight"), "FAILED", "Action failed in execute: no end in sight"),
        (Outcome(Answer.CANCEL, "nobody needs it"), "CANCELLED", "Action execution cancelled. nobody needs it"),
        (Outcome(Answer.CANCEL), "CANCELLED", "Action execution cancelled."),
        (BUSY, "PENDING", "Action is tried again later: The pool is being rebuilt"),
        (CloudBusy("Server x is busy"), "PENDING", "Action is tried again later: Server x is busy"),
    ],
)
def test_outcome_decides_the_state(
    answering: Callable[[object], None], outcome: object, state: str, message: str | None
) -> None:
    answering(outcome)
    action = run()
    assert (action.state, action.status_message) == (state, message)


def test_failure_without_a_reason_names_the_action(answering: Callable[[object], None]) -> None:
    answering(Outcome(Answer.TIMEOUT))
    action = run()
    assert action.status_message == f"Action failed in execute: The action {action.uuid} execution took too long."


@pytest.mark.parametrize("answer", [True, False, None, "done"])
def test_result_that_is_not_an_outcome_fails_the_action_and_names_its_type(
    answering: Callable[[object], None], answer: object
) -> None:
    answering(answer)
    expected = f"Action failed in execute: execute of actions of type nop does not return an Outcome, but {answer!r}"
    assert run().status_message == expected


def test_deferred_action_records_an_event_and_skips_post_condition(answering: Callable[[object], None]) -> None:
    answering(BUSY)
    action = run()
    assert phases(action) == [("pre_condition", "Success"), ("execute", "Retry")]
    assert action.events.get(event="execute").details == "The pool is being rebuilt"


def test_deferred_action_has_no_owner(answering: Callable[[object], None]) -> None:
    answering(BUSY)
    lease: Any = FakeLease()
    lease.owner = Service.register(Service.APPLIER, "here").pk
    action = run(lease)
    assert (action.owner, action.start_time, action.end_time) == (None, None, None)


@pytest.mark.parametrize(("retries", "pause"), [(0, 10), (1, 20), (2, 40)])
def test_retry_interval_doubles_with_each_retry(
    answering: Callable[[object], None], settings: Settings, retries: int, pause: int
) -> None:
    settings.ACTION_RETRY_INTERVAL = 10
    answering(BUSY)
    before = timezone.now()
    action = run(retries=retries)
    assert action.retries == retries + 1
    assert before <= (action.due_time or before) - timedelta(seconds=pause) <= timezone.now()


def test_action_fails_with_the_reason_after_the_last_retry(answering: Callable[[object], None]) -> None:
    answering(BUSY)
    action = run(retries=3)
    expected = "Action failed in execute: Exceeded maximum number of retries (3): The pool is being rebuilt"
    assert (action.state, action.status_message) == ("FAILED", expected)
    assert phases(action)[1:] == [("execute", "Error"), ("post_condition", "Success")]


def test_retry_clears_the_status_message_and_the_due_time(answering: Callable[[object], None]) -> None:
    answering(DONE)
    action = run(retries=1, status_message="Action is tried again later: x", due_time=timezone.now())
    assert (action.state, action.status_message, action.due_time) == ("SUCCEEDED", None, None)


def test_deferred_action_is_ready_only_when_it_is_due() -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    plan.actions.update(due_time=timezone.now() + timedelta(minutes=1))
    assert not plan.actions.ready().exists()
    plan.actions.update(due_time=timezone.now())
    assert plan.actions.ready().exists()


def test_worker_of_an_earlier_attempt_cannot_defer_the_action(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": []}, state="ONGOING")

    def execute(self: ActionType) -> Outcome:
        successor = plan.actions.get()
        successor.begin_again()
        successor.save_state()
        return BUSY

    monkeypatch.setattr(Nop, "execute", execute)
    assert not execution.execute(plan.actions.get(), FakeLease())
    left = plan.actions.get()
    assert (left.state, left.attempt, left.retries) == ("ONGOING", 2, 0)
