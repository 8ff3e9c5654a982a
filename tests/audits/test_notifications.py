"""Notifications of audits: creation, phases of a run, errors, changes and deletion."""

import pytest
from django.db import transaction

from audits.engine.engine import DecisionEngine
from audits.models import Audit
from audits.notifications import announce_event
from audits.operations.creation import create_audit
from tests.builders import make_audit, make_node, make_strategy
from tests.interleaving import Rival
from tests.watcher_site.notifications.outbox import data, listen, payloads, written_event_types
from watcher_site.outbox.kinds import UPDATE, Event
from watcher_site.outbox.writing import announce

pytestmark = pytest.mark.django_db


def test_run_of_a_oneshot_audit_notifies_each_phase_and_the_plan() -> None:
    listen()
    make_node()
    make_strategy()
    audit = create_audit(audit_type="ONESHOT", goal="dummy", strategy="dummy", name="look")
    DecisionEngine().run_next_audit()
    assert [one for one in written_event_types() if one != "action.create"] == [
        "audit.create",
        "audit.update",
        "audit.strategy.start",
        "audit.strategy.end",
        "audit.planner.start",
        "action_plan.create",
        "audit.planner.end",
        "audit.update",
    ]
    created = data(payloads("audit.create")[0])
    assert created["uuid"] == str(audit.uuid)
    assert (created["name"], created["state"], created["auto_trigger"]) == ("look", "PENDING", False)
    assert data(created["goal"])["uuid"] == created["goal_uuid"]
    assert data(created["strategy"])["uuid"] == created["strategy_uuid"]
    assert data(payloads("audit.strategy.start")[0])["state"] == "ONGOING"
    update = data(payloads("audit.update")[-1])
    assert data(update["state_update"]) == {"old_state": "ONGOING", "state": "SUCCEEDED", "status_message": None}


def test_failed_strategy_notifies_the_error_with_its_fault() -> None:
    listen("*.error")
    make_audit(strategy=make_strategy("saving_energy", "saving_energy"), state=Audit.State.PENDING)
    DecisionEngine().run_next_audit()
    (error,) = payloads("audit.strategy.error")
    assert error["watcher_object.name"] == "AuditActionPayload"
    fault = data(data(error)["fault"])
    assert fault["exception"] == "Invalid"
    assert fault["exception_message"] == "The cluster state is not defined"


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_notifications_of_an_audit_are_in_the_order_of_its_changes() -> None:
    listen()
    audit = make_audit(state=Audit.State.ONGOING)
    rival = Rival(lambda: announce_event(audit, Event("strategy.start")))
    with transaction.atomic():
        Audit.objects.select_for_update().get(pk=audit.pk)
        rival.start()
        announce(Audit.notified_as, [UPDATE], [audit.pk])
    rival.result()
    assert written_event_types() == ["audit.update", "audit.strategy.start"]


def test_deletion_of_an_audit_is_notified() -> None:
    listen()
    make_audit(state=Audit.State.SUCCEEDED).remove()
    assert written_event_types() == ["audit.update", "audit.delete"]
