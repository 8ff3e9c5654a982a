"""Signals to derived actions, to the actions that wait for them, and to their plan."""

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
from tests.actions.engine.derived.test_derived_actions import reload, states
from tests.builders import action, make_plan
from tests.plans.applier.test_commits import counted
from tests.plans.deriving import behave, deriving
from tests.plans.inline import InlineExecutor, run_waiting

pytestmark = pytest.mark.django_db


@pytest.fixture
def applier() -> Applier:
    return Applier(InlineExecutor())


def plan_with_a_waiting_action(
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
def test_cancel_of_a_waiting_action_cancels_its_derived_actions_and_aborts_it(
    monkeypatch: pytest.MonkeyPatch, applier: Applier, on_failure: str, state_of_b: str
) -> None:
    plan = plan_with_a_waiting_action(monkeypatch, applier, {"x": [], "y": ["x"]}, on_failure=on_failure)
    signal_action(action(plan, "a").uuid, Signal.CANCEL, "alice")
    finish(applier)
    assert states(plan) == {"a": "CANCELLED", "b": state_of_b, "x": "CANCELLED", "y": "CANCELLED"}
    assert action(plan, "a").events.filter(event="abort").count() == 1
    assert reload(plan).state == "CANCELLED"


def test_cancel_of_a_derived_action_cancels_its_children_and_continues_the_waiting_action(
    monkeypatch: pytest.MonkeyPatch, applier: Applier
) -> None:
    plan = plan_with_a_waiting_action(monkeypatch, applier, {"x": [], "y": ["x"], "z": []})
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


def test_derived_actions_of_a_suspended_plan_start_after_the_resume(
    monkeypatch: pytest.MonkeyPatch, applier: Applier
) -> None:
    plan = plan_with_a_waiting_action(monkeypatch, applier, {"x": [], "y": ["x"]})
    signal_plan(plan, Signal.SUSPEND, "alice")
    for _ in range(5):
        applier.poll_soon()
        applier.advance()
        applier.collect(0)
    assert states(plan) == {"a": "PENDING", "b": "PENDING", "x": "PENDING", "y": "PENDING"}
    signal_plan(reload(plan), Signal.RESUME, "alice")
    finish(applier)
    assert (reload(plan).state, set(states(plan).values())) == ("SUCCEEDED", {"SUCCEEDED"})


def test_action_cancelled_during_execute_derives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    derive = deriving({"x": []})

    def execute(self: ActionType) -> Outcome:
        signal_action(action(plan, "a").uuid, Signal.CANCEL, "alice")
        return derive(self)

    behave(monkeypatch, a=execute)
    run_waiting()
    assert states(plan) == {"a": "CANCELLED"}
    assert reload(plan).state == "CANCELLED"


def test_statement_count_of_a_cancel_does_not_depend_on_the_number_of_derived_actions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    costs = []
    for size in (10, 100):
        applier = Applier(InlineExecutor())
        plan = plan_with_a_waiting_action(monkeypatch, applier, {f"x{number}": [] for number in range(size)})
        with counted() as statements:
            signal_action(action(plan, "a").uuid, Signal.CANCEL, "alice")
        costs.append(len(statements))
        assert Action.objects.filter(action_plan=plan, state="CANCELLED").count() == size
        finish(applier)
        assert reload(plan).state == "CANCELLED"
    assert costs[0] == costs[1]


def test_actions_derived_after_the_window_closed_start_when_it_opens(
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
    assert (calls, reload(plan).state) == (["a", "x", "a_goes_on"], "SUCCEEDED")
