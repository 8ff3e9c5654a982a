"""Cancelling a plan that runs."""

import pytest

from actions.models import Action
from actions.operations.skipping import skip_action
from plans.applier.applier import Applier
from plans.models import ActionPlan
from tests.builders import action, make_plan
from tests.plans.inline import InlineExecutor, run_waiting
from watcher_site.models import Service

pytestmark = pytest.mark.django_db


def again(plan: ActionPlan) -> ActionPlan:
    return ActionPlan.objects.get(pk=plan.pk)


def states(plan: ActionPlan) -> dict[str, str]:
    return dict(plan.actions.values_list("input_parameters__message", "state"))


def put(plan: ActionPlan, name: str, state: str) -> None:
    Action.objects.filter(pk=action(plan, name).pk).update(state=state)


def running_plan(**states: str) -> ActionPlan:
    """Make a plan that a lost applier was running, its actions in these states."""
    plan = make_plan({name: [] for name in states}, state="ONGOING")
    for name, state in states.items():
        put(plan, name, state)
    return plan


def test_what_has_not_begun_is_cancelled_and_what_was_skipped_stays_so() -> None:
    plan = running_plan(a="SUCCEEDED", b="PENDING", c="SKIPPED")
    again(plan).abandon("alice")
    run_waiting()
    assert states(plan) == {"a": "SUCCEEDED", "b": "CANCELLED", "c": "SKIPPED"}
    assert again(plan).state == "CANCELLED"
    assert action(plan, "b").status_message == "Action was cancelled with its action plan."


@pytest.mark.parametrize(("last", "result"), [("SUCCEEDED", "SUCCEEDED"), ("FAILED", "FAILED")])
def test_a_cancel_that_comes_when_all_has_finished_leaves_the_true_result(last: str, result: str) -> None:
    plan = running_plan(a="SUCCEEDED", b=last)
    again(plan).abandon("alice")
    run_waiting()
    assert again(plan).state == result


def test_a_failed_action_does_not_keep_a_cancelled_plan_from_being_cancelled() -> None:
    plan = running_plan(a="FAILED", b="PENDING")
    again(plan).abandon("alice")
    run_waiting()
    assert again(plan).state == "CANCELLED"


def test_an_action_that_can_not_be_aborted_fails_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("actions.types.nop.Nop.abort")
    plan = running_plan(a="CANCELLING", b="PENDING")
    ActionPlan.objects.filter(pk=plan.pk).update(state="CANCELLING", status_message="Action plan was cancelled.")
    run_waiting()
    assert again(plan).state == "FAILED"
    message = again(plan).status_message or ""
    assert message.startswith(
        "Action plan was cancelled. One or more actions could not be aborted. 1 of 2 actions failed"
    )


@pytest.mark.parametrize("state", ["PENDING", "ONGOING"])
def test_a_cancelled_plan_says_what_was_skipped_before(state: str) -> None:
    plan = make_plan({"a": [], "b": []})
    skip_action(action(plan, "a").uuid, "bob", "month-end closing")
    ActionPlan.objects.filter(pk=plan.pk).update(state=state)
    again(plan).abandon("alice")
    run_waiting()
    assert (again(plan).state, again(plan).status_message) == (
        "CANCELLED",
        "Action plan was cancelled by alice. One or more actions were skipped. "
        f"1 of 2: {action(plan, 'a').uuid} by bob (month-end closing).",
    )


def test_a_lost_appliers_actions_are_cancelled_with_the_plan() -> None:
    plan = running_plan(a="ONGOING", b="PENDING")
    again(plan).abandon("alice")
    run_waiting()
    assert states(plan) == {"a": "CANCELLED", "b": "CANCELLED"}
    assert again(plan).state == "CANCELLED"


def test_the_applier_notices_a_cancel_at_its_next_look() -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    applier = Applier(InlineExecutor())
    applier.advance()
    again(plan).abandon("alice")
    applier.poll()
    assert states(plan)["b"] == "CANCELLED"
    applier.stop()


def test_no_action_begins_once_the_plan_is_being_cancelled() -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    applier = Applier(InlineExecutor())
    applier.advance()
    again(plan).abandon("alice")
    applier.collect(0)
    applier.submit()
    assert states(plan)["b"] == "PENDING"
    applier.stop()


def test_another_appliers_plan_is_released() -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    applier = Applier(InlineExecutor())
    applier.advance()
    other = Service.register(Service.APPLIER, "elsewhere")
    ActionPlan.objects.filter(pk=plan.pk).update(applier=other)
    applier.poll()
    applier.collect(0)
    applier.advance()
    assert not applier.runs
    assert (states(plan)["b"], again(plan).applier) == ("PENDING", other)
    applier.stop()
