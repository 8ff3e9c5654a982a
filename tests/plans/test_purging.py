"""The permanent deletion of plans in transactions of a limited number of rows."""

from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from actions.models import Action, ActionEvent
from actions.models.instance_actions import InstanceAction
from plans import purging
from plans.models import ActionPlan
from plans.purging import remove_plans
from tests.builders import action, make_plan

pytestmark = pytest.mark.django_db


class Interrupted(Exception):
    pass


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purging, "ROWS", 4)
    monkeypatch.setattr(purging, "ACTIONS", 2)


def large_plan(**columns: Any) -> ActionPlan:
    """Make a plan of five actions with three events each, of which one derived another."""
    graph = {"a": [], "b": ["a"], "c": ["a", "b"], "d": ["c"], "e": ["d"]}
    plan = make_plan(graph, state="SUCCEEDED", **columns)
    for one in plan.actions.all():
        ActionEvent.objects.bulk_create(ActionEvent(action=one, event="execute") for _ in range(3))
    plan.actions.filter(pk=action(plan, "e").pk).update(derived_from=action(plan, "a"))
    return plan


def interrupt_at(monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """Raise an error in this call of the function that deletes a batch of rows."""
    original, calls = purging.remove_some, []

    def remove_some(*arguments: Any) -> int:
        calls.append(arguments)
        if len(calls) == call:
            raise Interrupted
        return original(*arguments)

    monkeypatch.setattr(purging, "remove_some", remove_some)


def test_plan_with_more_rows_than_the_limit_is_deleted_completely(small_batches: None) -> None:
    plan = large_plan()
    assert sum(remove_plans(ActionPlan.objects.all(), [plan.pk])) == 6
    assert [model.objects.count() for model in (ActionPlan, Action, ActionEvent)] == [0, 0, 0]


def test_small_plans_share_a_transaction_up_to_the_row_limit(small_batches: None) -> None:
    keys = [make_plan({"a": []}).pk for _ in range(5)]
    assert [group for group, _ in purging.make_groups(keys)] == [keys[:2], keys[2:4], keys[4:]]


def test_large_plan_is_deleted_in_separate_transactions(small_batches: None) -> None:
    small, large, other = make_plan().pk, large_plan().pk, make_plan().pk
    assert [group for group, _ in purging.make_groups([small, large, other])] == [[small], [large], [other]]


def test_plan_that_no_longer_matches_is_not_deleted(small_batches: None) -> None:
    plan = large_plan()
    assert sum(remove_plans(ActionPlan.objects.filter(state="FAILED"), [plan.pk])) == 0
    assert (ActionPlan.objects.present().count(), plan.actions.count()) == (1, 5)


@pytest.mark.parametrize("call", [1, 2, 3, 5, 8])
def test_interrupted_deletion_leaves_a_deleted_plan_and_can_be_repeated(
    small_batches: None, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    plan = large_plan()
    with monkeypatch.context() as patches:
        interrupt_at(patches, call)
        with pytest.raises(Interrupted):
            sum(remove_plans(ActionPlan.objects.all(), [plan.pk]))
    assert not ActionPlan.objects.present().exists()
    sum(remove_plans(ActionPlan.objects.all(), [plan.pk]))
    assert [model.objects.count() for model in (ActionPlan, Action, ActionEvent)] == [0, 0, 0]


def test_earlier_deletion_time_of_a_plan_is_kept(small_batches: None, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = timezone.now()
    plan = large_plan(deleted_at=moment)
    interrupt_at(monkeypatch, 1)
    with pytest.raises(Interrupted):
        sum(remove_plans(ActionPlan.objects.all(), [plan.pk]))
    assert ActionPlan.objects.get().deleted_at == moment


def test_instance_action_keeps_its_events_after_an_interrupted_deletion(
    small_batches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = large_plan()
    InstanceAction.objects.create(server_uuid=uuid4(), action=action(plan, "e"), verb="stop", request_id="req-1")
    with monkeypatch.context() as patches:
        interrupt_at(patches, 2)
        with pytest.raises(Interrupted):
            sum(remove_plans(ActionPlan.objects.all(), [plan.pk]))
    sum(remove_plans(ActionPlan.objects.all(), [plan.pk]))
    assert len(InstanceAction.objects.get().kept_events) == 3
