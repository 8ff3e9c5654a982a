"""Approvals interleaved with starts and changes: no plan starts without the approval of its current actions."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from pytest_django import Settings

from actions.operations import skipping
from actions.operations.skipping import restore_action, skip_action
from plans.models import ActionPlan
from plans.models.querysets import ActionPlanQuerySet
from plans.operations.approval import approve_plan, version_of_actions, withdraw_approval
from tests.builders import action, make_plan
from tests.interleaving import Rival, interrupt_after, interrupt_before
from watcher_site.refusals import Conflict
from watcher_site.request_context import CallingContext
from watcher_site.state_machine import ConcurrentTransition

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
ALICE = CallingContext(user="alice")


@pytest.fixture(autouse=True)
def _approval_is_required(settings: Settings) -> None:
    settings.PLAN_APPROVAL = True


def again(plan: ActionPlan) -> ActionPlan:
    return ActionPlan.objects.get(pk=plan.pk)


def make_plan_with_skipped_action() -> ActionPlan:
    plan = make_plan({"a": [], "b": []})
    skip_action(action(plan, "a").uuid, "alice")
    return plan


def shown(plan: ActionPlan) -> str:
    return version_of_actions(plan.actions.all().latest_changes())


def test_start_waits_for_a_concurrent_withdrawal_and_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": []})
    approve_plan(plan, "bob")
    mine = again(plan)
    start = Rival(lambda: mine.launch(ALICE))
    interrupt_after(monkeypatch, ActionPlanQuerySet, "update", start)
    withdraw_approval(plan)
    with pytest.raises(ConcurrentTransition):
        start.result()
    assert (again(plan).state, again(plan).approved_by) == ("RECOMMENDED", None)


def test_withdrawal_waits_for_a_concurrent_start_and_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": []})
    approve_plan(plan, "bob")
    withdrawal = Rival(lambda: withdraw_approval(plan))
    interrupt_after(monkeypatch, ActionPlan, "save_state", withdrawal)
    again(plan).launch(ALICE)
    with pytest.raises(Conflict):
        withdrawal.result()
    assert (again(plan).state, again(plan).approved_by) == ("PENDING", "bob")


def test_start_waits_for_a_concurrent_restore_and_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan_with_skipped_action()
    approve_plan(plan, "bob")
    mine = again(plan)
    start = Rival(lambda: mine.launch(ALICE))
    interrupt_before(monkeypatch, skipping, "withdraw_approvals", start)
    restore_action(action(plan, "a").uuid)
    with pytest.raises(ConcurrentTransition):
        start.result()
    assert (again(plan).state, again(plan).approved_by) == ("RECOMMENDED", None)


def test_restore_waits_for_a_concurrent_start_and_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan_with_skipped_action()
    approve_plan(plan, "bob")
    skipped = action(plan, "a").uuid
    restore = Rival(lambda: restore_action(skipped))
    interrupt_after(monkeypatch, ActionPlan, "save_state", restore)
    again(plan).launch(ALICE)
    with pytest.raises(Conflict):
        restore.result()
    assert (again(plan).state, action(plan, "a").state) == ("PENDING", "SKIPPED")


def test_plan_is_not_started_by_a_user_who_read_it_before_its_approval() -> None:
    plan = make_plan({"a": []})
    approve_plan(again(plan), "bob")
    with pytest.raises(Conflict):
        plan.launch(ALICE)
    assert (again(plan).state, again(plan).approved_by) == ("RECOMMENDED", "bob")


def test_approval_waits_for_a_concurrent_approval_and_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": []})
    late = Rival(lambda: approve_plan(plan, "rosa"))
    interrupt_after(monkeypatch, ActionPlanQuerySet, "update", late)
    approve_plan(plan, "bob")
    with pytest.raises(Conflict):
        late.result()
    assert again(plan).approved_by == "bob"


def test_restore_waits_for_a_concurrent_approval_and_withdraws_it(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan_with_skipped_action()
    skipped = action(plan, "a").uuid
    restore = Rival(lambda: restore_action(skipped))
    interrupt_after(monkeypatch, ActionPlanQuerySet, "update", restore)
    approve_plan(plan, "bob", shown(plan))
    restore.result()
    assert (again(plan).approved_by, action(plan, "a").state) == (None, "PENDING")


@pytest.mark.parametrize(
    ("change", "name", "step"),
    [(restore_action, "a", "withdraw_approvals"), (partial(skip_action, by="alice"), "b", "save_together")],
    ids=["restore", "skip"],
)
def test_approval_waits_for_a_change_of_the_actions_and_is_refused(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[UUID], Any], name: str, step: str
) -> None:
    plan = make_plan_with_skipped_action()
    version = shown(plan)
    approval = Rival(lambda: approve_plan(plan, "bob", version))
    interrupt_before(monkeypatch, skipping, step, approval)
    change(action(plan, name).uuid)
    with pytest.raises(Conflict, match="have changed since they were shown"):
        approval.result()
    assert again(plan).approved_by is None
