"""Rollback: what a failed plan did is undone in reverse order, where that is switched on."""

import pytest
from django.db import OperationalError
from django.db.models import F
from django.utils import timezone

from actions.engine.execution import MOST_RECOVERIES
from actions.models import Action, ActionEvent
from actions.types.nop import Nop
from plans.models import ActionPlan
from tests.builders import action, make_plan
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db


def failing_plan() -> ActionPlan:
    plan = make_plan({"a": [], "b": ["a"], "c": ["b"]}, state="PENDING")
    found = action(plan, "c")
    Action.objects.filter(pk=found.pk).update(input_parameters={"message": "c", "fail_execute": True})
    return plan


def reverted(plan: ActionPlan) -> list[str]:
    events = ActionEvent.objects.filter(action__action_plan=plan, event="revert").order_by("pk")
    return list(events.values_list("action__input_parameters__message", flat=True))


def test_a_failed_plan_is_undone_in_reverse_order(settings: object) -> None:
    settings.ROLLBACK = True
    plan = failing_plan()
    run_waiting()
    assert reverted(plan) == ["b", "a"]
    assert plan.actions.count_states() == {"SUCCEEDED": 2, "FAILED": 1}
    settled = ActionPlan.objects.get(pk=plan.pk)
    assert settled.state == "FAILED"
    assert (settled.status_message or "").startswith("1 of 3 actions failed: ")
    assert (settled.status_message or "").endswith(" 2 actions reverted.")


def test_what_can_not_be_undone_is_said(settings: object, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.ROLLBACK = True
    monkeypatch.delattr("actions.types.nop.Nop.revert")
    plan = failing_plan()
    run_waiting()
    message = ActionPlan.objects.get(pk=plan.pk).status_message
    assert (message or "").endswith(" 0 actions reverted, 2 could not be.")


def test_nothing_is_undone_unless_it_is_switched_on() -> None:
    plan = failing_plan()
    run_waiting()
    assert reverted(plan) == []


def test_a_plan_that_succeeded_is_not_undone(settings: object) -> None:
    settings.ROLLBACK = True
    plan = make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert reverted(plan) == []


def test_a_rollback_that_was_interrupted_goes_on_where_it_was(settings: object) -> None:
    plan = failing_plan()
    run_waiting()
    done = {"event": "revert", "result": "Success", "finish_time": timezone.now()}
    ActionEvent.objects.create(action=action(plan, "b"), **done)
    ActionPlan.objects.filter(pk=plan.pk).update(state="ONGOING")
    settings.ROLLBACK = True
    run_waiting()
    assert reverted(plan) == ["b", "a"]


def test_a_revert_whose_outcome_is_lost_every_time_is_given_up(
    settings: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ROLLBACK = True
    settings.POLL_INTERVAL = 0
    calls = []

    def lose(self: Nop) -> bool:
        calls.append(self.context.action_uuid)
        raise OperationalError("gone")

    monkeypatch.setattr(Nop, "revert", lose)
    plan = failing_plan()
    run_waiting()
    assert len(calls) == 2 * MOST_RECOVERIES
    last = ActionEvent.objects.filter(action=action(plan, "a"), event="revert").last()
    assert (last.result, last.details) == ("Error", "It was interrupted 30 times. It is not tried again.")
    message = ActionPlan.objects.get(pk=plan.pk).status_message
    assert message.endswith("0 actions reverted, 2 could not be.")


def test_a_revert_during_which_the_plan_is_cancelled_is_recorded(
    settings: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reverted action is done again if the plan is continued."""
    settings.ROLLBACK = True
    plan = failing_plan()

    def revert(self: Nop) -> bool:
        ActionPlan.objects.get(pk=plan.pk).abandon("alice")
        return True

    monkeypatch.setattr(Nop, "revert", revert)
    run_waiting()
    undone = action(plan, "b")
    assert list(undone.events.filter(event="revert").values_list("result", flat=True)) == ["Success"]
    assert undone.owner is None
    assert undone in plan.actions.unachieved()


def test_a_revert_that_another_began_anew_is_not_recorded(settings: object, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.ROLLBACK = True
    plan = failing_plan()

    def revert(self: Nop) -> bool:
        Action.objects.filter(uuid=self.context.action_uuid).update(attempt=F("attempt") + 1)
        ActionPlan.objects.get(pk=plan.pk).abandon("alice")
        return True

    monkeypatch.setattr(Nop, "revert", revert)
    run_waiting()
    assert action(plan, "b").events.get(event="revert").result is None
