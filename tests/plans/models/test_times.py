"""The start and end times of a plan, which its transitions write."""

from datetime import timedelta
from importlib import import_module

import pytest
from django.utils import timezone

from actions.models import Action, ActionEvent
from plans.models import ActionPlan
from tests.builders import make_plan
from watcher_site.models import Service

pytestmark = pytest.mark.django_db
State = ActionPlan.State


def times(plan: ActionPlan) -> tuple[bool, bool]:
    """Return whether the row of the plan has a start and an end time."""
    start, end = ActionPlan.objects.values_list("start_time", "end_time").get(pk=plan.pk)
    return start is not None, end is not None


def test_start_time_is_written_when_an_applier_begins_the_plan() -> None:
    plan = make_plan(state="PENDING")
    plan.begin(Service.objects.create(name=Service.APPLIER, host="h"))
    plan.save_state()
    assert times(plan) == (True, False)


@pytest.mark.parametrize(
    ("state", "transition"),
    [
        *(("ONGOING", "succeed"), ("CANCELLING", "fail"), ("CANCELLING", "finish_cancel")),
        *(("PENDING", "cancel"), ("RECOMMENDED", "supersede")),
    ],
)
def test_each_transition_to_a_final_state_writes_the_end_time(state: str, transition: str) -> None:
    plan = make_plan(state=state)
    getattr(plan, transition)("It is over.")
    plan.save_state()
    assert times(plan) == (False, True)


def test_bulk_supersede_and_cancel_write_the_end_time() -> None:
    superseded, running = make_plan(), make_plan(state="ONGOING")
    ActionPlan.objects.supersede("A newer plan replaces it.", "Its plan is obsolete.")
    ActionPlan.objects.cancel_unfinished("The audit was cancelled.")
    assert (times(superseded), times(running)) == ((False, True), (False, False))


def test_plan_that_is_set_aside_and_its_running_actions_have_an_end_time() -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    plan.actions.update(state="ONGOING")
    ActionPlan.objects.filter(pk=plan.pk).fail_silently("It cannot be read.")
    plan.actions.all().end_silently("Its plan cannot be read.")
    assert times(plan) == (False, True)
    assert plan.actions.get().end_time is not None


def test_migration_computes_the_times_of_earlier_plans() -> None:
    now = timezone.now()
    ended = make_plan({"a": []}, state="SUCCEEDED", updated_at=now)
    running, recommended = make_plan({"a": []}, state="ONGOING", updated_at=now), make_plan({"a": []})
    for minutes, action in enumerate(Action.objects.exclude(action_plan=recommended).order_by("pk")):
        start = now - timedelta(minutes=10 + minutes)
        ActionEvent.objects.create(action=action, event="pre_condition", start_time=start, finish_time=now)
    import_module("plans.migrations.0011_times_of_earlier_plans").write_times(ActionPlan.objects.all())
    assert [times(plan) for plan in (ended, running, recommended)] == [(True, True), (True, False), (False, False)]
    ended.refresh_from_db()
    assert (ended.start_time, ended.end_time) == (now - timedelta(minutes=10), now)
