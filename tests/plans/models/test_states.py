"""The states of action plans."""

import pytest
from django_fsm import ConcurrentTransition

from actions.models import Action
from plans.models import ActionPlan
from tests.builders import make_plan
from watcher_site.refusals import Invalid, NotFound


@pytest.mark.django_db
def test_concurrent_second_start_of_a_plan_is_refused() -> None:
    plan = make_plan()
    first, second = ActionPlan.objects.get(pk=plan.pk), ActionPlan.objects.get(pk=plan.pk)
    first.launch()
    with pytest.raises(ConcurrentTransition):
        second.launch()


@pytest.mark.django_db
def test_cancelling_a_pending_plan_keeps_skipped_actions_skipped() -> None:
    plan = make_plan({"a": [], "b": []})
    skipped = plan.actions.get(input_parameters__message="a")
    skipped.skip("alice")
    skipped.save_state()
    plan.abandon("alice")
    assert dict(plan.actions.values_list("input_parameters__message", "state")) == {"a": "SKIPPED", "b": "CANCELLED"}


@pytest.mark.django_db
def test_deleted_plan_cannot_be_started() -> None:
    plan = make_plan()
    ActionPlan.objects.get(pk=plan.pk).remove()
    with pytest.raises(NotFound):
        plan.launch()


@pytest.mark.django_db
def test_started_plan_cannot_be_deleted() -> None:
    plan = make_plan()
    ActionPlan.objects.get(pk=plan.pk).launch()
    with pytest.raises(Invalid, match="PENDING"):
        plan.remove()


@pytest.mark.django_db
def test_plans_are_deleted_permanently_with_their_actions() -> None:
    make_plan({"a": [], "b": ["a"]})
    ActionPlan.objects.all().delete()
    assert not Action.objects.exists()
