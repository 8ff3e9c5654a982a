"""The approval of plans by another user: which starts require it, and which changes withdraw it."""

from collections.abc import Callable
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from actions.operations.dependencies import change_dependencies
from actions.operations.skipping import restore_action, restore_actions, skip_action, skip_actions
from plans.models import ActionPlan
from plans.operations.approval import approve_plan, withdraw_approval
from plans.operations.base import RequestOptions
from plans.operations.clusters import scale_out
from plans.operations.servers import reset_server
from plans.planning.continuation import continue_plan
from plans.planning.scheduling import schedule
from tests.actions.types.clusters.builders import make_cluster
from tests.builders import action, make_plan, make_server
from tests.plans.planning.test_continuation import ended
from tests.watcher_site.notifications.outbox import listen, written_event_types
from watcher_site.models import HistoryEntry
from watcher_site.refusals import Conflict
from watcher_site.request_context import CallingContext, on_behalf_of
from watcher_site.state_machine import ConcurrentTransition

pytestmark = pytest.mark.django_db
ALICE, BOB = CallingContext(user="alice"), CallingContext(user="bob")
REQUIRED = "Action plan {} requires the approval of another user."


@pytest.fixture(autouse=True)
def _approval_is_required(settings: Settings) -> None:
    settings.PLAN_APPROVAL = True


def again(plan: ActionPlan) -> ActionPlan:
    return ActionPlan.objects.get(pk=plan.pk)


def make_approved(by: str = "bob") -> ActionPlan:
    plan = make_plan({"a": [], "b": []})
    approve_plan(plan, by)
    return again(plan)


def skip_a(plan: ActionPlan) -> UUID:
    return skip_action(action(plan, "a").uuid, "alice").uuid


def approval_of(plan: ActionPlan) -> tuple[str | None, bool]:
    found = again(plan)
    return found.approved_by, found.approved_at is not None


# Starts


def test_start_without_an_approval_is_refused() -> None:
    plan = make_plan({"a": []})
    with pytest.raises(Conflict) as refusal:
        plan.launch(ALICE)
    assert str(refusal.value) == REQUIRED.format(plan.uuid)
    assert again(plan).state == "RECOMMENDED"


def test_start_by_the_user_who_approved_the_plan_is_refused() -> None:
    plan = make_approved(by="alice")
    with pytest.raises(Conflict, match="requires the approval of another user"):
        plan.launch(ALICE)


def test_approved_plan_is_started_by_another_user() -> None:
    plan = make_approved()
    plan.launch(ALICE)
    found = again(plan)
    assert (found.state, found.started_by, found.approved_by) == ("PENDING", "alice", "bob")


def test_scheduled_start_without_an_approval_is_refused_and_keeps_the_schedule() -> None:
    plan = make_plan({"a": []})
    with pytest.raises(Conflict, match="requires the approval of another user"):
        schedule(plan, {"start_at": "2100-01-01T00:00"}, start=True, caller=ALICE)
    assert (again(plan).state, again(plan).start_at) == ("RECOMMENDED", None)


def test_schedule_can_be_set_before_the_approval() -> None:
    plan = make_plan({"a": []})
    schedule(plan, {"start_at": "2100-01-01T00:00"})
    assert again(plan).start_at is not None


def test_start_after_a_withdrawal_since_the_plan_was_read_is_refused() -> None:
    plan = make_approved()
    withdraw_approval(plan)
    with pytest.raises(ConcurrentTransition):
        plan.launch(ALICE)
    assert again(plan).state == "RECOMMENDED"


def test_start_after_a_renewed_approval_since_the_plan_was_read_is_refused() -> None:
    plan = make_approved()
    withdraw_approval(plan)
    approve_plan(plan, "bob")
    with pytest.raises(ConcurrentTransition):
        plan.launch(ALICE)


def test_continuation_of_an_approved_plan_requires_its_own_approval() -> None:
    plan = ended({"a": []}, {"a": "FAILED"})
    ActionPlan.objects.filter(pk=plan.pk).update(approved_by="bob")
    with pytest.raises(Conflict, match="requires the approval of another user"):
        continue_plan(plan).launch(ALICE)


def test_operation_that_starts_at_once_requires_no_approval(cloud_admin: User) -> None:
    operation = scale_out(make_cluster(size=1), options=RequestOptions(ALICE))
    assert ActionPlan.objects.get(uuid=operation.action_plan).state == "PENDING"


def test_operation_on_a_server_requires_no_approval() -> None:
    assert reset_server(make_server(), "error", ALICE).state == "PENDING"


def test_operation_that_is_only_proposed_requires_an_approval(cloud_admin: User) -> None:
    operation = scale_out(make_cluster(size=1), options=RequestOptions(ALICE, plan_only=True))
    with pytest.raises(Conflict, match="requires the approval of another user"):
        ActionPlan.objects.get(uuid=operation.action_plan).launch(ALICE)


def test_plan_starts_without_an_approval_if_none_is_required(settings: Settings) -> None:
    settings.PLAN_APPROVAL = False
    plan = make_plan({"a": []})
    plan.launch(ALICE)
    assert again(plan).state == "PENDING"


# Approvals and withdrawals


def test_approval_has_the_user_and_the_time() -> None:
    assert approval_of(make_approved()) == ("bob", True)


def test_withdrawal_removes_the_user_and_the_time() -> None:
    plan = make_approved()
    withdraw_approval(plan)
    assert approval_of(plan) == (None, False)


def test_approved_plan_cannot_be_approved_again() -> None:
    plan = make_approved()
    with pytest.raises(Conflict, match=f"Action plan {plan.uuid} is already approved by bob."):
        approve_plan(plan, "rosa")
    assert again(plan).approved_by == "bob"


def test_approval_of_a_plan_without_one_cannot_be_withdrawn() -> None:
    plan = make_plan()
    with pytest.raises(Conflict, match=f"Action plan {plan.uuid} is not approved."):
        withdraw_approval(plan)


@pytest.mark.parametrize("state", ["PENDING", "ONGOING", "SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED"])
def test_only_recommended_plans_can_be_approved(state: str) -> None:
    plan = make_plan(state=state)
    with pytest.raises(Conflict, match=f"Action plan {plan.uuid} is {state}: its start can no longer be approved."):
        approve_plan(plan, "bob")


def test_approval_of_a_started_plan_cannot_be_withdrawn() -> None:
    plan = make_approved()
    plan.launch(ALICE)
    with pytest.raises(Conflict, match="is PENDING: its approval can no longer be withdrawn"):
        withdraw_approval(plan)


@pytest.mark.parametrize("change", [lambda plan: approve_plan(plan, "bob"), withdraw_approval])
def test_site_without_approvals_refuses_them(settings: Settings, change: Callable[[ActionPlan], None]) -> None:
    settings.PLAN_APPROVAL = False
    with pytest.raises(Conflict, match="WATCHER_PLAN_APPROVAL is false"):
        change(make_plan(approved_by="rosa"))


def test_approval_and_withdrawal_are_recorded_in_history() -> None:
    with on_behalf_of(lambda: BOB):
        withdraw_approval(make_approved())
    entries = HistoryEntry.objects.order_by("pk").values_list("user", "deed")
    assert list(entries) == [("bob", "action_plan.approve"), ("bob", "action_plan.withdraw_approval")]


def test_approval_is_notified_as_an_update_of_the_plan() -> None:
    listen()
    make_approved()
    assert written_event_types() == ["action_plan.update"]


# Changes of the actions


def test_restored_action_withdraws_the_approval() -> None:
    plan = make_plan({"a": [], "b": []})
    skipped = skip_a(plan)
    approve_plan(plan, "bob")
    restore_action(skipped)
    assert approval_of(plan) == (None, False)


def test_several_restored_actions_withdraw_the_approval() -> None:
    plan = make_plan({"a": [], "b": []})
    uuids = [one.uuid for one in plan.actions.all()]
    skip_actions(plan, uuids, "alice")
    approve_plan(plan, "bob")
    restore_actions(plan, uuids)
    assert approval_of(plan) == (None, False)


def test_withdrawal_by_a_restored_action_is_recorded_in_history() -> None:
    plan = make_plan({"a": [], "b": []})
    skipped = skip_a(plan)
    approve_plan(plan, "bob")
    with on_behalf_of(lambda: ALICE):
        restore_action(skipped)
    entry = HistoryEntry.objects.get(deed="action_plan.withdraw_approval")
    assert (entry.user, entry.object_uuid, entry.message) == ("alice", plan.uuid, "Actions were restored.")


def test_refused_restore_keeps_the_approval() -> None:
    plan = make_approved()
    with pytest.raises(Conflict):
        restore_action(action(plan, "a").uuid)
    assert approval_of(plan) == ("bob", True)


def test_skipped_action_keeps_the_approval() -> None:
    plan = make_approved()
    skip_a(plan)
    assert approval_of(plan) == ("bob", True)


def test_changed_dependencies_withdraw_the_approval() -> None:
    plan = make_approved()
    change_dependencies(action(plan, "b").uuid, lambda _: [action(plan, "a").uuid])
    assert approval_of(plan) == (None, False)


def test_changed_dependencies_of_an_approved_plan_are_notified_as_one_update() -> None:
    plan = make_approved()
    listen()
    change_dependencies(action(plan, "b").uuid, lambda _: [action(plan, "a").uuid])
    assert written_event_types().count("action_plan.update") == 1


def test_restore_in_an_approved_plan_that_was_started_is_refused() -> None:
    plan = make_plan({"a": [], "b": []})
    skipped = skip_a(plan)
    approve_plan(plan, "bob")
    again(plan).launch(ALICE)
    with pytest.raises(Conflict, match="was approved and started"):
        restore_action(skipped)
    assert action(plan, "a").state == "SKIPPED"


def test_change_of_dependencies_in_an_approved_plan_that_was_started_is_refused() -> None:
    plan = make_approved()
    plan.launch(ALICE)
    with pytest.raises(Conflict, match="was approved and started"):
        change_dependencies(action(plan, "b").uuid, lambda _: [action(plan, "a").uuid])


def test_restore_in_a_plan_that_was_started_without_an_approval_is_possible() -> None:
    plan = make_plan({"a": [], "b": []}, state="PENDING")
    restore_action(skip_a(plan))
    assert action(plan, "a").state == "PENDING"


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: restore_action(skip_a(plan)),
        lambda plan: change_dependencies(action(plan, "b").uuid, lambda _: []),
        lambda plan: plan.launch(ALICE, needs_approval=False),
    ],
    ids=["restore", "dependencies", "start"],
)
def test_plans_without_an_approval_take_no_additional_query(
    settings: Settings, change: Callable[[ActionPlan], None]
) -> None:
    numbers = []
    for required in (False, True):
        settings.PLAN_APPROVAL = required
        plan = make_plan({"a": [], "b": []})
        with CaptureQueriesContext(connection) as queries:
            change(plan)
        numbers.append(len(queries))
    assert numbers[0] == numbers[1]
