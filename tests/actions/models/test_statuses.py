"""Status of an action, derived from its state, the state of its plan and the states of its parents."""

import pytest

from actions.models import Action
from actions.models.statuses import Status, conditions, status_condition, status_expression
from plans.models import ActionPlan
from tests.builders import action, make_plan

pytestmark = pytest.mark.django_db


def status_of(one: Action) -> str:
    return str(Action.objects.annotate(status=status_expression()).get(pk=one.pk).status)


@pytest.mark.parametrize("state", [state for state in ActionPlan.State if state not in ActionPlan.RUNNING])
def test_pending_action_of_a_plan_that_is_not_running_is_init(state: str) -> None:
    assert status_of(action(make_plan({"a": []}, state=state), "a")) == "INIT"


@pytest.mark.parametrize("state", sorted(ActionPlan.RUNNING))
def test_pending_action_of_a_running_plan_is_ready_or_waiting(state: str) -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state=state)
    assert (status_of(action(plan, "a")), status_of(action(plan, "b"))) == ("READY", "WAITING")


@pytest.mark.parametrize("state", sorted(Action.FINAL))
def test_pending_action_is_ready_after_its_parents_ended_in_any_state(state: str) -> None:
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
def test_state_other_than_pending_maps_to_its_status(state: str, status: str) -> None:
    one = action(make_plan({"a": []}, state="ONGOING"), "a")
    Action.objects.update(state=state)
    assert status_of(one) == status


@pytest.mark.parametrize("plan_state", ActionPlan.State.values)
@pytest.mark.parametrize("state", Action.State.values)
def test_status_filter_matches_only_the_status_that_is_shown(state: str, plan_state: str) -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state=plan_state)
    Action.objects.filter(pk=action(plan, "b").pk).update(state=state)
    for one in plan.actions.all():
        found = [status for status in Status if plan.actions.filter(status_condition([status]), pk=one.pk).exists()]
        assert found == [status_of(one)]


def test_every_status_has_a_filter_condition() -> None:
    assert set(conditions()) == set(Status)
