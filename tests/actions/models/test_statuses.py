"""The status that follows from an action's state, its plan's and its parents'."""

import pytest

from actions.models import Action
from actions.models.statuses import Status, conditions, status_condition, status_expression
from plans.models import ActionPlan
from tests.builders import action, make_plan

pytestmark = pytest.mark.django_db


def status_of(one: Action) -> str:
    return str(Action.objects.annotate(status=status_expression()).get(pk=one.pk).status)


@pytest.mark.parametrize("state", [state for state in ActionPlan.State if state not in ActionPlan.RUNNING])
def test_what_is_pending_under_a_plan_that_does_not_run_is_being_prepared(state: str) -> None:
    assert status_of(action(make_plan({"a": []}, state=state), "a")) == "INIT"


@pytest.mark.parametrize("state", sorted(ActionPlan.RUNNING))
def test_what_is_pending_under_a_running_plan_is_ready_or_waits(state: str) -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state=state)
    assert (status_of(action(plan, "a")), status_of(action(plan, "b"))) == ("READY", "WAITING")


@pytest.mark.parametrize("state", sorted(Action.FINAL))
def test_what_waited_is_ready_when_its_parents_have_ended_in_whatever_way(state: str) -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="ONGOING")
    Action.objects.filter(pk=action(plan, "a").pk).update(state=state)
    assert status_of(action(plan, "b")) == "READY"


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("ONGOING", "RUNNING"),
        ("CANCELLING", "RUNNING"),
        ("SUCCEEDED", "SUCCEEDED"),
        ("FAILED", "FAILED"),
        ("CANCELLED", "CANCELLED"),
        ("SKIPPED", "SKIPPED"),
    ],
)
def test_every_other_state_has_its_status(state: str, status: str) -> None:
    one = action(make_plan({"a": []}, state="ONGOING"), "a")
    Action.objects.update(state=state)
    assert status_of(one) == status


@pytest.mark.parametrize("plan_state", ActionPlan.State.values)
@pytest.mark.parametrize("state", Action.State.values)
def test_the_filter_finds_an_action_by_the_status_that_it_shows_and_by_no_other(state: str, plan_state: str) -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state=plan_state)
    Action.objects.filter(pk=action(plan, "b").pk).update(state=state)
    for one in plan.actions.all():
        found = [status for status in Status if plan.actions.filter(status_condition([status]), pk=one.pk).exists()]
        assert found == [status_of(one)]


def test_every_status_has_its_condition() -> None:
    assert set(conditions()) == set(Status)
