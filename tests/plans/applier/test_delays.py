"""Derived actions with a delay hold no worker while they wait, and are not forgotten."""

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
from tests.plans.applier.test_retries import advance, come
from tests.plans.deriving import behave, plan_to_derive
from tests.plans.inline import InlineExecutor

pytestmark = pytest.mark.django_db
HOUR = 3600


def derives_later(_: ActionType) -> Outcome:
    return Outcome(Answer.WAIT, derived=[ProposedAction("nop", {"message": "x"}, delay=HOUR)])


def waits_an_hour(_: ActionType) -> Outcome:
    return Outcome(Answer.WAIT, delay=HOUR)


@pytest.fixture
def applier() -> Applier:
    return Applier(InlineExecutor(slots=2))


@pytest.fixture(params=["derived", "planned"])
def plan(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ActionPlan:
    """A plan of which a derives x, which begins an hour later."""
    if request.param == "derived":
        behave(monkeypatch, a=derives_later)
        return make_plan({"a": []}, state="PENDING")
    behave(monkeypatch, a=waits_an_hour)
    return plan_to_derive({"a": []}, {"a": {"x": []}})


def seconds_left(plan: ActionPlan) -> float:
    due_time = action(plan, "x").due_time
    return (due_time - timezone.now()).total_seconds() if due_time else 0


def test_what_is_delayed_begins_when_its_time_has_come(applier: Applier, plan: ActionPlan) -> None:
    advance(applier)
    assert HOUR - 60 < seconds_left(plan) <= HOUR
    assert (action(plan, "x").state, applier.jobs, applier.is_idle) == ("PENDING", 0, False)
    come(plan, applier)
    advance(applier)
    assert (action(plan, "x").state, ActionPlan.objects.get(pk=plan.pk).state) == ("SUCCEEDED", "SUCCEEDED")


def test_the_time_of_what_is_delayed_is_known_also_while_others_of_its_plan_still_run(
    applier: Applier, plan: ActionPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is known from the end of what derived it, and not only when the plan has come to rest."""
    monkeypatch.setattr(PlanRun, "load_deferred", lambda _: False)
    advance(applier)
    (run,) = applier.runs.values()
    assert [key for _, key in run.deferred] == [action(plan, "x").pk]


def test_another_applier_does_not_begin_before_the_time(applier: Applier, plan: ActionPlan) -> None:
    advance(applier)
    applier.executor.withdraw()
    applier.stop()
    other = Applier(InlineExecutor())
    advance(other)
    assert action(plan, "x").state == "PENDING"
    come(plan, other)
    advance(other)
    assert ActionPlan.objects.get(pk=plan.pk).state == "SUCCEEDED"


def test_a_cancel_ends_what_is_delayed_at_once(applier: Applier, plan: ActionPlan) -> None:
    advance(applier)
    ActionPlan.objects.get(pk=plan.pk).abandon("alice")
    applier.next_poll = 0
    advance(applier)
    assert action(plan, "x").state == "CANCELLED"


def test_a_delay_of_what_is_planned_counts_from_the_execution_of_what_derives_it() -> None:
    a = ProposedAction("nop", {"message": "a"})
    plan = propose([a, ProposedAction("nop", {"message": "x"}, derived_from=a.uuid, delay=HOUR)])
    assert action(plan, "x").due_time is None


def test_an_action_that_a_plan_begins_with_may_be_delayed_too() -> None:
    plan = propose([ProposedAction("nop", {"message": "x"}, delay=HOUR)])
    due_time = action(plan, "x").due_time
    assert due_time
    assert due_time > timezone.now() + timedelta(seconds=HOUR - 60)
