"""Delayed actions use no worker while they wait, and begin at their due time."""

from datetime import timedelta

import pytest
from django.utils import timezone

from actions.graph.proposals import ProposedAction
from actions.types.base import ActionType, Answer, Outcome
from plans.applier.applier import Applier
from plans.applier.plan_run import PlanRun
from plans.models import ActionPlan
from plans.planning.proposals import propose
from tests.builders import action, make_plan
from tests.plans.applier.test_retries import advance, make_due
from tests.plans.deriving import behave, plan_to_derive
from tests.plans.inline import InlineExecutor

pytestmark = pytest.mark.django_db
HOUR = 3600


def derive_delayed_action(_: ActionType) -> Outcome:
    return Outcome(Answer.WAIT, derived=[ProposedAction("nop", {"message": "x"}, delay=HOUR)])


def wait_for_an_hour(_: ActionType) -> Outcome:
    return Outcome(Answer.WAIT, delay=HOUR)


@pytest.fixture
def applier() -> Applier:
    return Applier(InlineExecutor(slots=2))


@pytest.fixture(params=["derived", "planned"])
def plan(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ActionPlan:
    """A plan whose action a derives x, with a delay of an hour."""
    if request.param == "derived":
        behave(monkeypatch, a=derive_delayed_action)
        return make_plan({"a": []}, state="PENDING")
    behave(monkeypatch, a=wait_for_an_hour)
    return plan_to_derive({"a": []}, {"a": {"x": []}})


def seconds_left(plan: ActionPlan) -> float:
    due_time = action(plan, "x").due_time
    return (due_time - timezone.now()).total_seconds() if due_time else 0


def test_delayed_action_begins_at_its_due_time(applier: Applier, plan: ActionPlan) -> None:
    advance(applier)
    assert HOUR - 60 < seconds_left(plan) <= HOUR
    assert (action(plan, "x").state, applier.jobs, applier.is_idle) == ("PENDING", 0, False)
    make_due(plan, applier)
    advance(applier)
    assert (action(plan, "x").state, ActionPlan.objects.get(pk=plan.pk).state) == ("SUCCEEDED", "SUCCEEDED")


def test_applier_learns_the_due_time_from_the_end_of_the_deriving_action(
    applier: Applier, plan: ActionPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The due time is read when the deriving action ends, and not only when no other action runs."""
    monkeypatch.setattr(PlanRun, "load_deferred", lambda _: False)
    advance(applier)
    (run,) = applier.runs.values()
    assert [key for _, key in run.deferred] == [action(plan, "x").pk]


def test_new_applier_keeps_the_due_time_of_a_delayed_action(applier: Applier, plan: ActionPlan) -> None:
    advance(applier)
    applier.executor.withdraw()
    applier.stop()
    other = Applier(InlineExecutor())
    advance(other)
    assert action(plan, "x").state == "PENDING"
    make_due(plan, other)
    advance(other)
    assert ActionPlan.objects.get(pk=plan.pk).state == "SUCCEEDED"


def test_cancel_ends_a_delayed_action_immediately(applier: Applier, plan: ActionPlan) -> None:
    advance(applier)
    ActionPlan.objects.get(pk=plan.pk).abandon("alice")
    applier.next_poll = 0
    advance(applier)
    assert action(plan, "x").state == "CANCELLED"


def test_delay_of_a_planned_action_does_not_count_before_its_parent_derives_it() -> None:
    a = ProposedAction("nop", {"message": "a"})
    plan = propose([a, ProposedAction("nop", {"message": "x"}, derived_from=a.uuid, delay=HOUR)])
    assert action(plan, "x").due_time is None


def test_delay_of_an_initial_action_sets_its_due_time() -> None:
    plan = propose([ProposedAction("nop", {"message": "x"}, delay=HOUR)])
    due_time = action(plan, "x").due_time
    assert due_time
    assert due_time > timezone.now() + timedelta(seconds=HOUR - 60)
