"""The sequences of notifications of a plan that runs, is cancelled, or is deleted."""

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
from tests.builders import action, make_audit, make_plan
from tests.plans.applier.test_commits import counted
from tests.plans.inline import run_waiting
from tests.watcher_site.notifications.outbox import data, listen, payloads, written_event_types
from watcher_site.models import Notification, Service
from watcher_site.outbox.writing import listeners

pytestmark = pytest.mark.django_db


@pytest.fixture
def audience() -> None:
    listen()


def start(**switches: Any) -> ActionPlan:
    plan = make_plan({"a": []}, state="PENDING")
    plan.actions.update(input_parameters={"message": "a", **switches})
    return plan


@pytest.mark.usefixtures("audience")
def test_a_plan_that_succeeds_tells_of_its_action_and_of_itself() -> None:
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


@pytest.mark.usefixtures("audience")
def test_an_action_is_pending_yet_in_the_event_that_starts_it_and_tells_its_states_in_the_updates() -> None:
    plan = start()
    run_waiting()
    (beginning,) = payloads("action.execution.start")
    begun, ended = payloads("action.update")
    assert data(beginning)["state"] == "PENDING"
    assert data(data(begun)["state_update"]) == {"old_state": "PENDING", "state": "ONGOING", "status_message": None}
    assert data(data(ended)["state_update"])["old_state"] == "ONGOING"
    assert data(data(ended)["action_plan"])["state"] == "ONGOING"
    assert data(ended)["updated_at"] == f"{plan.actions.get().updated_at:%Y-%m-%dT%H:%M:%SZ}"


@pytest.mark.usefixtures("audience")
def test_an_action_that_is_skipped_automatically_tells_so_once_with_its_message() -> None:
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


@pytest.mark.usefixtures("audience")
def test_an_action_that_fails_tells_where_and_of_what_exception() -> None:
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


@pytest.mark.usefixtures("audience")
def test_a_failure_before_the_start_has_no_start() -> None:
    start(fail_pre_condition=True)
    run_waiting()
    assert written_event_types("action") == ["action.update", "action.execution.error"]


@pytest.mark.usefixtures("audience")
def test_a_skip_by_a_person_is_notified_at_once_and_not_again_when_the_plan_runs() -> None:
    plan = make_plan({"a": []}, state="PENDING")
    skip_action(plan.actions.get().uuid, "rosa", "not tonight")
    (update,) = payloads("action.update")
    assert data(update)["status_message"] == "Action skipped by user. Reason: not tonight"
    assert data(data(update)["state_update"])["old_state"] == "PENDING"
    run_waiting()
    assert written_event_types("action") == ["action.update"]


@pytest.mark.usefixtures("audience")
def test_a_skip_of_several_actions_is_notified_for_each() -> None:
    plan = make_plan({"a": [], "b": [], "c": []})
    skip_actions(plan, [action(plan, name).uuid for name in ("a", "b")], "rosa")
    objects = (
        Notification.objects.filter(event_type="action.update").order_by("pk").values_list("object_uuid", flat=True)
    )
    assert list(objects) == [action(plan, "a").uuid, action(plan, "b").uuid]


@pytest.mark.usefixtures("audience")
def test_a_plan_that_is_cancelled_before_it_began_tells_of_itself_and_of_each_action() -> None:
    plan = make_plan({"a": [], "b": []}, state="PENDING")
    plan.abandon("rosa")
    assert written_event_types() == ["action_plan.update", "action.update", "action.update"]
    assert data(data(payloads("action.update")[0])["state_update"])["state"] == "CANCELLED"


@pytest.mark.usefixtures("audience")
def test_a_plan_that_is_cancelled_while_it_runs_tells_when_its_applier_meets_that_and_when_it_is_done() -> None:
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


@pytest.mark.usefixtures("audience")
def test_a_deletion_tells_of_the_plan_and_of_each_action() -> None:
    plan = make_plan({"a": []}, state="SUCCEEDED")
    plan.remove()
    assert written_event_types("action_plan") == ["action_plan.update", "action_plan.delete"]
    assert written_event_types("action") == ["action.update", "action.delete"]
    deleted = data(payloads("action_plan.delete")[0])
    assert deleted["deleted_at"] == f"{ActionPlan.objects.get().deleted_at:%Y-%m-%dT%H:%M:%SZ}"
    update = data(payloads("action_plan.update")[0])
    assert update["state"] == "DELETED"
    assert data(update["state_update"]) == {"old_state": "SUCCEEDED", "state": "DELETED", "status_message": None}


@pytest.mark.usefixtures("audience")
def test_a_new_plan_tells_of_itself_with_its_audit_and_of_its_actions_with_their_parents() -> None:
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


def test_nothing_is_written_where_nobody_listens_to_such_events() -> None:
    listen("audit.*")
    start()
    run_waiting()
    assert written_event_types() == []


def test_a_refused_change_is_not_notified() -> None:
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
def test_an_action_takes_no_more_statements_on_postgresql_for_those_who_listen(listened: bool) -> None:
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
