"""The steps of the applier, executed one by one without threads."""

import pytest
from django.db import OperationalError

from actions.models import Action
from plans.applier.applier import Applier
from plans.models import ActionPlan
from tests.builders import action, make_plan
from tests.plans.inline import InlineExecutor, run_waiting
from watcher_site.processes.worker import Heartbeat

pytestmark = pytest.mark.django_db


def states(plan: ActionPlan) -> dict[str, str]:
    return dict(plan.actions.values_list("input_parameters__message", "state"))


def again(plan: ActionPlan) -> ActionPlan:
    return ActionPlan.objects.get(pk=plan.pk)


def switch(plan: ActionPlan, name: str, **switches: bool) -> None:
    found = action(plan, name)
    Action.objects.filter(pk=found.pk).update(input_parameters={**found.input_parameters, **switches})


def test_pending_plan_is_run_to_its_end() -> None:
    plan = make_plan({"a": [], "b": ["a"], "c": ["a", "b"]}, state="PENDING")
    run_waiting()
    assert states(plan) == {"a": "SUCCEEDED", "b": "SUCCEEDED", "c": "SUCCEEDED"}
    assert (again(plan).state, again(plan).status_message, again(plan).applier) == ("SUCCEEDED", None, None)


def test_child_begins_after_its_parents_ended() -> None:
    plan = make_plan({"c": ["b"], "b": ["a"], "a": []}, state="PENDING")
    run_waiting()
    order = plan.actions.order_by("events__pk").filter(events__event="execute")
    assert list(order.values_list("input_parameters__message", flat=True)) == ["a", "b", "c"]


def test_plan_without_actions_succeeds() -> None:
    plan = make_plan(state="PENDING")
    run_waiting()
    assert again(plan).state == "SUCCEEDED"


def test_recommended_plan_is_not_run() -> None:
    plan = make_plan({"a": []})
    run_waiting()
    assert again(plan).state == "RECOMMENDED"


def test_children_run_after_failed_and_skipped_parents() -> None:
    plan = make_plan({"a": [], "b": ["a"], "c": ["b"]}, state="PENDING")
    switch(plan, "a", fail_execute=True)
    switch(plan, "b", skip_pre_condition=True)
    run_waiting()
    assert states(plan) == {"a": "FAILED", "b": "SKIPPED", "c": "SUCCEEDED"}


def test_plan_fails_if_an_action_failed() -> None:
    plan = make_plan({"a": [], "b": []}, state="PENDING")
    switch(plan, "a", fail_execute=True)
    run_waiting()
    failed = f"1 of 2 actions failed: {action(plan, 'a').uuid} (execute: The action execution failed)."
    assert (again(plan).state, again(plan).status_message) == ("FAILED", failed)


def test_action_skipped_by_a_user_is_not_executed() -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    skipped = action(plan, "a")
    skipped.skip("alice")
    skipped.save_state()
    run_waiting()
    assert states(plan) == {"a": "SKIPPED", "b": "SUCCEEDED"}
    assert not skipped.events.exists()
    assert again(plan).status_message == f"One or more actions were skipped. 1 of 2: {skipped.uuid} by alice."


def test_more_actions_than_one_page_are_all_run() -> None:
    plan = make_plan({str(number): [] for number in range(250)}, state="PENDING")
    run_waiting()
    assert plan.actions.count_states() == {"SUCCEEDED": 250}


def test_actions_in_a_cycle_are_cancelled_and_fail_the_plan() -> None:
    plan = make_plan({"a": ["b"], "b": ["a"], "c": []}, state="PENDING")
    run_waiting()
    assert states(plan) == {"a": "CANCELLED", "b": "CANCELLED", "c": "SUCCEEDED"}
    assert again(plan).state == "FAILED"


@pytest.mark.django_db(transaction=True)
def test_applier_in_once_mode_continues_after_a_database_error(
    monkeypatch: pytest.MonkeyPatch, settings: object
) -> None:
    settings.POLL_INTERVAL = 0.01
    plan = make_plan({"a": []}, state="PENDING")
    problems = [OperationalError("connection lost")]
    adopt = Applier.adopt

    def raise_once(self: Applier) -> None:
        if problems:
            raise problems.pop()
        adopt(self)

    monkeypatch.setattr(Applier, "adopt", raise_once)
    monkeypatch.setattr(Heartbeat, "start", lambda self: None)
    Applier(InlineExecutor()).run(once=True)
    assert again(plan).state == "SUCCEEDED"
