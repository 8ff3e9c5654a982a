"""People signal actions that others derived, those that wait for them, and their plan."""

from datetime import timedelta

import pytest
from django.utils import timezone

from actions.models import Action
from actions.operations.signals import Signal, signal_action
from actions.types.base import ActionType, Outcome
from actions.types.nop import Nop
from plans.applier.applier import Applier
from plans.models import ActionPlan
from plans.operations.signals import signal_plan
from tests.actions.engine.derived.test_derived_actions import again, states
from tests.builders import action, make_plan
from tests.plans.applier.test_commits import counted
from tests.plans.deriving import behave, deriving
from tests.plans.inline import InlineExecutor, run_waiting

pytestmark = pytest.mark.django_db


@pytest.fixture
def applier() -> Applier:
    return Applier(InlineExecutor())


def waiting(
    monkeypatch: pytest.MonkeyPatch, applier: Applier, graph: dict[str, list[str]], **columns: str
) -> ActionPlan:
    """Run a plan until its first action waits for its derived actions."""
    monkeypatch.setattr(Nop, "abort", lambda _: True)
    behave(monkeypatch, a=deriving(graph))
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING", **columns)
    applier.advance()
    return plan


def finish(applier: Applier) -> None:
    for _ in range(20):
        applier.poll_soon()
        applier.advance()
        applier.collect(0)
    applier.stop()


@pytest.mark.parametrize(("on_failure", "state_of_b"), [("continue", "SUCCEEDED"), ("stop", "CANCELLED")])
def test_who_cancels_an_action_that_waits_cancels_what_it_derived_and_it_is_aborted(
    monkeypatch: pytest.MonkeyPatch, applier: Applier, on_failure: str, state_of_b: str
) -> None:
    plan = waiting(monkeypatch, applier, {"x": [], "y": ["x"]}, on_failure=on_failure)
    signal_action(action(plan, "a").uuid, Signal.CANCEL, "alice")
    finish(applier)
    assert states(plan) == {"a": "CANCELLED", "b": state_of_b, "x": "CANCELLED", "y": "CANCELLED"}
    assert action(plan, "a").events.filter(event="abort").count() == 1
    assert again(plan).state == "CANCELLED"


def test_who_cancels_a_derived_action_cancels_what_depends_on_it_and_the_one_that_waits_goes_on(
    monkeypatch: pytest.MonkeyPatch, applier: Applier
) -> None:
    plan = waiting(monkeypatch, applier, {"x": [], "y": ["x"], "z": []})
    signal_action(action(plan, "x").uuid, Signal.CANCEL, "alice")
    finish(applier)
    assert states(plan) == {
        "a": "CANCELLED",
        "b": "SUCCEEDED",
        "x": "CANCELLED",
        "y": "CANCELLED",
        "z": "SUCCEEDED",
    }
    assert action(plan, "a").events.filter(event="go_on").exists()


def test_a_suspended_plan_neither_begins_what_was_derived_nor_loses_it(
    monkeypatch: pytest.MonkeyPatch, applier: Applier
) -> None:
    plan = waiting(monkeypatch, applier, {"x": [], "y": ["x"]})
    signal_plan(plan, Signal.SUSPEND, "alice")
    for _ in range(5):
        applier.poll_soon()
        applier.advance()
        applier.collect(0)
    assert states(plan) == {"a": "PENDING", "b": "PENDING", "x": "PENDING", "y": "PENDING"}
    signal_plan(again(plan), Signal.RESUME, "alice")
    finish(applier)
    assert (again(plan).state, set(states(plan).values())) == ("SUCCEEDED", {"SUCCEEDED"})


def test_an_action_that_is_cancelled_while_it_is_executed_derives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    derive = deriving({"x": []})

    def execute(self: ActionType) -> Outcome:
        signal_action(action(plan, "a").uuid, Signal.CANCEL, "alice")
        return derive(self)

    behave(monkeypatch, a=execute)
    run_waiting()
    assert states(plan) == {"a": "CANCELLED"}
    assert again(plan).state == "CANCELLED"


def test_to_cancel_a_hundred_derived_actions_takes_as_many_statements_as_to_cancel_ten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    costs = []
    for size in (10, 100):
        applier = Applier(InlineExecutor())
        plan = waiting(monkeypatch, applier, {f"x{number}": [] for number in range(size)})
        with counted() as statements:
            signal_action(action(plan, "a").uuid, Signal.CANCEL, "alice")
        costs.append(len(statements))
        assert Action.objects.filter(action_plan=plan, state="CANCELLED").count() == size
        finish(applier)
        assert again(plan).state == "CANCELLED"
    assert costs[0] == costs[1]


def test_what_is_derived_when_the_window_closes_waits_until_it_opens_again(
    monkeypatch: pytest.MonkeyPatch, applier: Applier
) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    derive = deriving({"x": []})

    def execute(self: ActionType) -> Outcome:
        ActionPlan.objects.filter(pk=plan.pk).update(opens_at=timezone.now() + timedelta(hours=1))
        return derive(self)

    calls = behave(monkeypatch, a=execute)
    for _ in range(5):
        applier.poll_soon()
        applier.advance()
        applier.collect(0)
    assert (calls, states(plan)) == (["a"], {"a": "PENDING", "x": "PENDING"})
    ActionPlan.objects.filter(pk=plan.pk).update(opens_at=None)
    finish(applier)
    assert (calls, again(plan).state) == (["a", "x", "a_goes_on"], "SUCCEEDED")
