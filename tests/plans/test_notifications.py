"""The sequences of notifications of a plan that is run, cancelled or deleted."""

from typing import Any

import pytest

from actions.engine import execution
from actions.exclusions.rules import current_rules
from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.operations.skipping import skip_action, skip_actions
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from plans.planning.proposals import propose
from tests.api import Caller
from tests.builders import action, make_audit, make_plan
from tests.plans.applier.test_commits import counted
from tests.plans.inline import run_waiting
from tests.watcher_site.notifications.outbox import data, listen, payloads, written_event_types
from watcher_site.models import Notification, Service
from watcher_site.outbox.writing import listeners

pytestmark = pytest.mark.django_db


@pytest.fixture
def all_events() -> None:
    listen()


def start(**switches: Any) -> ActionPlan:
    plan = make_plan({"a": []}, state="PENDING")
    plan.actions.update(input_parameters={"message": "a", **switches})
    return plan


@pytest.mark.usefixtures("all_events")
def test_succeeding_plan_notifies_its_action_and_its_own_states() -> None:
    start()
    run_waiting()
    assert written_event_types() == [
        "action_plan.update",
        "action_plan.execution.start",
        "action.execution.start",
        "action.update",
        "action.update",
        "action.execution.end",
        "action_plan.update",
        "action_plan.execution.end",
    ]


@pytest.mark.usefixtures("all_events")
def test_all_notifications_of_a_plan_have_the_id_of_the_request_that_started_it(api: Caller) -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    answer = api.post(f"/action_plans/{plan.uuid}/start")
    run_waiting()
    assert "action_plan.execution.end" in written_event_types()
    without = Notification.objects.exclude(request_id=answer["x-openstack-request-id"])
    assert list(without.values_list("event_type", "request_id")) == []


@pytest.mark.usefixtures("all_events")
def test_action_start_is_notified_as_pending_and_updates_have_both_states() -> None:
    plan = start()
    run_waiting()
    (beginning,) = payloads("action.execution.start")
    begun, ended = payloads("action.update")
    assert data(beginning)["state"] == "PENDING"
    assert data(data(begun)["state_update"]) == {"old_state": "PENDING", "state": "ONGOING", "status_message": None}
    assert data(data(ended)["state_update"])["old_state"] == "ONGOING"
    assert data(data(ended)["action_plan"])["state"] == "ONGOING"
    assert data(ended)["updated_at"] == f"{plan.actions.get().updated_at:%Y-%m-%dT%H:%M:%SZ}"


@pytest.mark.usefixtures("all_events")
def test_automatic_skip_is_notified_once_with_its_message() -> None:
    start(skip_pre_condition=True)
    run_waiting()
    assert written_event_types("action") == ["action.update"]
    (update,) = payloads("action.update")
    message = "Action was skipped automatically: Skipped in pre_condition"
    assert data(data(update)["state_update"]) == {
        "old_state": "PENDING",
        "state": "SKIPPED",
        "status_message": message,
    }
    plan = data(payloads("action_plan.execution.end")[0])
    assert plan["status_message"].startswith("One or more actions were skipped.")


@pytest.mark.usefixtures("all_events")
def test_failed_action_is_notified_with_its_phase_and_exception() -> None:
    start(fail_execute=True)
    run_waiting()
    assert written_event_types("action") == [
        "action.execution.start",
        "action.update",
        "action.update",
        "action.execution.error",
    ]
    (error,) = payloads("action.execution.error")
    fault = data(data(error)["fault"])
    assert fault["exception"] == "ActionFailed"
    assert fault["module_name"] == "actions.engine.phases"
    assert fault["exception_message"].endswith("execution failed.")
    assert data(data(payloads("action_plan.execution.error")[0])["fault"])["exception"] == "ActionPlanFailed"
    assert list(Notification.objects.filter(event_type__endswith=".error").values_list("priority", flat=True)) == [
        "ERROR",
        "ERROR",
    ]


@pytest.mark.usefixtures("all_events")
def test_failure_in_pre_condition_is_notified_without_a_start() -> None:
    start(fail_pre_condition=True)
    run_waiting()
    assert written_event_types("action") == ["action.update", "action.execution.error"]


@pytest.mark.usefixtures("all_events")
def test_skip_by_a_user_is_notified_immediately_and_not_again_in_the_run() -> None:
    plan = make_plan({"a": []}, state="PENDING")
    skip_action(plan.actions.get().uuid, "rosa", "not tonight")
    (update,) = payloads("action.update")
    assert data(update)["status_message"] == "Action skipped by user. Reason: not tonight"
    assert data(data(update)["state_update"])["old_state"] == "PENDING"
    run_waiting()
    assert written_event_types("action") == ["action.update"]


@pytest.mark.usefixtures("all_events")
def test_skip_of_several_actions_is_notified_for_each() -> None:
    plan = make_plan({"a": [], "b": [], "c": []})
    skip_actions(plan, [action(plan, name).uuid for name in ("a", "b")], "rosa")
    objects = (
        Notification.objects.filter(event_type="action.update").order_by("pk").values_list("object_uuid", flat=True)
    )
    assert list(objects) == [action(plan, "a").uuid, action(plan, "b").uuid]


@pytest.mark.usefixtures("all_events")
def test_cancelling_a_pending_plan_notifies_the_plan_and_each_action() -> None:
    plan = make_plan({"a": [], "b": []}, state="PENDING")
    plan.abandon("rosa")
    assert written_event_types() == ["action_plan.update", "action.update", "action.update"]
    assert data(data(payloads("action.update")[0])["state_update"])["state"] == "CANCELLED"


@pytest.mark.usefixtures("all_events")
def test_cancelling_a_running_plan_notifies_the_start_and_the_end_of_the_cancel() -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    plan.abandon("rosa")
    run_waiting()
    assert written_event_types() == [
        "action_plan.update",
        "action_plan.cancel.start",
        "action.update",
        "action_plan.update",
        "action_plan.cancel.end",
    ]
    update = data(payloads("action_plan.update")[-1])
    assert data(update["state_update"])["old_state"] == "CANCELLING"


@pytest.mark.usefixtures("all_events")
def test_deletion_notifies_the_plan_and_each_action() -> None:
    plan = make_plan({"a": []}, state="SUCCEEDED")
    plan.remove()
    assert written_event_types("action_plan") == ["action_plan.update", "action_plan.delete"]
    assert written_event_types("action") == ["action.update", "action.delete"]
    deleted = data(payloads("action_plan.delete")[0])
    assert deleted["deleted_at"] == f"{ActionPlan.objects.get().deleted_at:%Y-%m-%dT%H:%M:%SZ}"
    update = data(payloads("action_plan.update")[0])
    assert update["state"] == "DELETED"
    assert data(update["state_update"]) == {"old_state": "SUCCEEDED", "state": "DELETED", "status_message": None}


@pytest.mark.usefixtures("all_events")
def test_new_plan_is_notified_with_its_audit_and_its_actions_with_parents() -> None:
    audit = make_audit()
    first = ProposedAction("nop", {"message": "first", "nested": {"deep": [1, None]}})
    second = ProposedAction("nop", {"message": "second"}, [first.uuid])
    plan = propose([first, second], audit_id=audit.pk, strategy_id=audit.strategy_id)
    assert written_event_types() == ["action_plan.create", "action.create", "action.create"]
    payload = payloads("action_plan.create")[0]
    assert (payload["watcher_object.name"], payload["watcher_object.version"]) == ("ActionPlanCreatePayload", "1.2")
    created = data(payload)
    assert created["audit_uuid"] == data(created["audit"])["uuid"] == str(audit.uuid)
    assert data(created["strategy"])["name"] == "dummy"
    of_first, of_second = map(data, payloads("action.create"))
    assert of_first["input_parameters"] == {"message": "first", "nested": {"deep": [1, None]}}
    assert (of_first["parents"], of_second["parents"]) == ([], [str(first.uuid)])
    assert data(of_second["action_plan"]) == {
        "uuid": str(plan.uuid),
        "state": "RECOMMENDED",
        "global_efficacy": [],
        "audit_uuid": str(audit.uuid),
        "strategy_uuid": str(audit.strategy.uuid),
        "status_message": None,
        "created_at": f"{plan.created_at:%Y-%m-%dT%H:%M:%SZ}",
        "updated_at": None,
        "deleted_at": None,
    }


def test_events_without_subscriptions_are_not_written() -> None:
    listen("audit.*")
    start()
    run_waiting()
    assert written_event_types() == []


def test_refused_change_is_not_notified() -> None:
    listen()
    plan = make_plan({"a": []}, state="PENDING")
    stale = Action.objects.get()
    skip_action(stale.uuid, "rosa")
    applier = Service.register(Service.APPLIER, "here")
    ActionPlan.objects.filter(pk=plan.pk).update(state="ONGOING", applier=applier)
    Notification.objects.all().delete()
    assert not execution.execute(stale, PlanLease.of(ActionPlan.objects.get(), applier))
    assert written_event_types() == []


@pytest.mark.parametrize("listened", [False, True])
def test_notifications_add_no_statements_to_an_action_on_postgresql(listened: bool) -> None:
    if listened:
        listen()
    plan = start()
    applier = Service.register(Service.APPLIER, "here")
    plan.begin(applier)
    plan.save_state()
    lease = PlanLease.of(plan, applier)
    lease.hold(has_begun=False)
    action = plan.actions.get()
    listeners.read_patterns()
    current_rules()
    with counted() as statements:
        assert execution.execute(action, lease)
    kinds = [sql.split()[0] for sql in statements if "SAVEPOINT" not in sql]
    elsewhere = ["UPDATE", "INSERT", *["WITH"] * listened, "UPDATE", "UPDATE", "INSERT", *["WITH"] * listened]
    assert kinds in (["WITH", "WITH"], elsewhere)
    assert len(written_event_types("action")) == (4 if listened else 0)
