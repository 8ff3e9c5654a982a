"""Cancelling a running plan."""

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


def set_state(plan: ActionPlan, name: str, state: str) -> None:
    Action.objects.filter(pk=action(plan, name).pk).update(state=state)


def running_plan(**states: str) -> ActionPlan:
    """Make an ongoing plan of a dead applier, with its actions in these states."""
    plan = make_plan({name: [] for name in states}, state="ONGOING")
    for name, state in states.items():
        set_state(plan, name, state)
    return plan


def test_pending_actions_are_cancelled_and_skipped_actions_stay_skipped() -> None:
    plan = running_plan(a="SUCCEEDED", b="PENDING", c="SKIPPED")
    again(plan).abandon("alice")
    run_waiting()
    assert states(plan) == {"a": "SUCCEEDED", "b": "CANCELLED", "c": "SKIPPED"}
    assert again(plan).state == "CANCELLED"
    assert action(plan, "b").status_message == "Action was cancelled with its action plan."


@pytest.mark.parametrize(("last", "result"), [("SUCCEEDED", "SUCCEEDED"), ("FAILED", "FAILED")])
def test_cancel_after_all_actions_ended_keeps_their_result(last: str, result: str) -> None:
    plan = running_plan(a="SUCCEEDED", b=last)
    again(plan).abandon("alice")
    run_waiting()
    assert again(plan).state == result


def test_cancelled_plan_with_a_failed_action_is_cancelled() -> None:
    plan = running_plan(a="FAILED", b="PENDING")
    again(plan).abandon("alice")
    run_waiting()
    assert again(plan).state == "CANCELLED"


def test_action_that_cannot_be_aborted_fails_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_message_of_a_cancelled_plan_names_skipped_actions(state: str) -> None:
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


def test_actions_of_a_dead_applier_are_cancelled_with_the_plan() -> None:
    plan = running_plan(a="ONGOING", b="PENDING")
    again(plan).abandon("alice")
    run_waiting()
    assert states(plan) == {"a": "CANCELLED", "b": "CANCELLED"}
    assert again(plan).state == "CANCELLED"


def test_applier_applies_a_cancel_at_its_next_poll() -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    applier = Applier(InlineExecutor())
    applier.advance()
    again(plan).abandon("alice")
    applier.poll()
    assert states(plan)["b"] == "CANCELLED"
    applier.stop()


def test_no_action_begins_while_the_plan_is_cancelling() -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    applier = Applier(InlineExecutor())
    applier.advance()
    again(plan).abandon("alice")
    applier.collect(0)
    applier.submit()
    assert states(plan)["b"] == "PENDING"
    applier.stop()


def test_plan_owned_by_another_applier_is_released() -> None:
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
