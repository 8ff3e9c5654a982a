"""Notifications about audits: events, payloads and versions (docs/compatibility.md, "Notifications")."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.db.models.functions import JSONObject

from actions.types.base import explain
from audits.models import Audit
from plans.notifications import AUDIT, STRATEGY, describe_strategy, terse_audit
from watcher_site.outbox import payloads
from watcher_site.outbox.kinds import ERROR, LIFE, Event, Kind, phases_of
from watcher_site.outbox.payloads import TIMES, fault, identifier, state_update, structure, times, versioned
from watcher_site.outbox.writing import announce, listeners
from watcher_site.processes.worker import LOST_DATABASE

STRATEGY_PHASE, PLANNER_PHASE = "strategy", "planner"
GOAL = ("uuid", "name", "display_name", "efficacy_specification", *TIMES)
PAYLOADS = {
    "create": "AuditCreatePayload",
    "update": "AuditUpdatePayload",
    "delete": "AuditDeletePayload",
    "strategy": "AuditActionPayload",
    "planner": "AuditActionPayload",
}


class AuditNotifications(Kind):
    name = "audit"
    label, page = "Audit", "audits:detail"
    event_names = (*LIFE, *phases_of(STRATEGY_PHASE, PLANNER_PHASE))

    @property
    def model(self) -> type[Audit]:
        return Audit

    def snapshot(self) -> Mapping[str, Any]:
        return {
            **{name: name for name in AUDIT},
            "goal_uuid": "goal__uuid",
            "strategy_uuid": "strategy__uuid",
            "goal": JSONObject(**{name: f"goal__{name}" for name in GOAL}),
            "strategy": JSONObject(**{name: f"strategy__{name}" for name in STRATEGY}),
        }

    def payload(self, notification: Any) -> dict[str, Any]:
        operation, _, phase = notification.event_type.removeprefix("audit.").partition(".")
        data = describe_audit(notification.snapshot)
        if operation == "update":
            data["state_update"] = state_update("AuditStateUpdatePayload", notification)
        if phase:
            data["fault"] = fault(notification)
        return versioned(PAYLOADS[operation], "1.2", data)


def describe_audit(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that all payloads of an audit have."""
    goal = structure(snapshot["goal"])
    data = {
        "uuid": identifier(goal["uuid"]),
        "name": goal["name"],
        "display_name": goal["display_name"],
        "efficacy_specification": structure(goal["efficacy_specification"]),
        **times(goal),
    }
    return {
        **terse_audit(snapshot),
        "goal": versioned("GoalPayload", "1.0", data),
        "strategy": describe_strategy(structure(snapshot["strategy"])),
    }


@contextmanager
def phase_notifications(audit: Audit, phase: str, ends: bool = True) -> Iterator[None]:
    """Send notifications of the start and the end of a part of an audit's run, or of its error.

    Args:
        ends: whether to send the end here, instead of in the transaction of the end.
    """
    announce_event(audit, Event(f"{phase}.start"))
    try:
        yield
    except LOST_DATABASE:
        raise
    except Exception as problem:
        announce_event(audit, Event(f"{phase}.error", ERROR, payloads.describe_fault(problem, explain(problem))))
        raise
    if ends:
        announce_event(audit, Event(f"{phase}.end"))


def announce_event(audit: Audit, event: Event) -> None:
    """Write one event of an audit into the outbox if there is a receiver for it."""
    if not listeners.want(f"{AuditNotifications.name}.{event.name}", event.priority):
        return
    with transaction.atomic():
        # The row is locked, as for a change, so that the keys of an object's notifications are in order.
        Audit.objects.select_for_update(no_key=True).filter(pk=audit.pk).first()
        announce(AuditNotifications.name, [event], [audit.pk])
