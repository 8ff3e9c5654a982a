"""Notifications about action plans: events, payloads and versions (docs/compatibility.md, "Notifications")."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models.functions import JSONObject

from actions.notifications import terse_plan
from plans.models import ActionPlan
from watcher_site.outbox.kinds import ERROR, LIFE, UPDATE, Event, Kind, Summary, phases_of
from watcher_site.outbox.payloads import (
    TIMES,
    fault,
    identifier,
    moment,
    state_of,
    state_update,
    structure,
    times,
    versioned,
)

State = ActionPlan.State
EXECUTION, CANCEL = "execution", "cancel"
# The events sent after the update event when an applier begins or ends a plan, by old and new state.
AFTER = {
    (State.PENDING, State.ONGOING): ((EXECUTION, "start"),),
    (State.ONGOING, State.SUCCEEDED): ((EXECUTION, "end"),),
    (State.ONGOING, State.FAILED): ((EXECUTION, "error"),),
    # Single actions were cancelled, without a cancel of the whole plan.
    (State.ONGOING, State.CANCELLED): ((CANCEL, "end"),),
    (State.CANCELLING, State.CANCELLED): ((CANCEL, "end"),),
    (State.CANCELLING, State.FAILED): ((CANCEL, "error"),),
    # Nothing was left to cancel.
    (State.CANCELLING, State.SUCCEEDED): ((EXECUTION, "end"), (CANCEL, "end")),
}
CANCEL_START = Event("cancel.start")
PAYLOADS = {
    "create": "ActionPlanCreatePayload",
    "update": "ActionPlanUpdatePayload",
    "delete": "ActionPlanDeletePayload",
    "execution": "ActionPlanActionPayload",
    "cancel": "ActionPlanCancelPayload",
}
AUDIT = (
    *("uuid", "name", "audit_type", "state", "parameters", "interval", "scope", "auto_trigger", "next_run_time"),
    *("status_message", *TIMES),
)
STRATEGY = ("uuid", "name", "display_name", "parameters_spec", *TIMES)


class ActionPlanNotifications(Kind):
    name = "action_plan"
    label, page = "Action plan", "plans:detail"
    event_names = (*LIFE, *phases_of("execution", "cancel"))

    @property
    def model(self) -> type[ActionPlan]:
        return ActionPlan

    def snapshot(self) -> Mapping[str, Any]:
        audit = {name: f"audit__{name}" for name in AUDIT}
        references = {"goal_uuid": "audit__goal__uuid", "strategy_uuid": "audit__strategy__uuid"}
        own = ("uuid", "state", "global_efficacy", "status_message", *TIMES)
        return {
            **{name: name for name in own},
            "audit_uuid": "audit__uuid",
            "strategy_uuid": "strategy__uuid",
            "audit": JSONObject(**audit, **references),
            "strategy": JSONObject(**{name: f"strategy__{name}" for name in STRATEGY}),
        }

    def summary(self, snapshot: Mapping[str, Any]) -> Summary:
        """Return the description of a plan, which has no name, with the name of its audit."""
        audit, uuid = structure(snapshot["audit"])["name"], identifier(snapshot["uuid"])
        name = f"{uuid} of audit {audit}" if audit else str(uuid)
        return Summary(name, state_of(snapshot), snapshot["status_message"])

    def between(self, old_state: str, state: str, fault: Mapping[str, Any] | None = None) -> Sequence[Event]:
        phases = AFTER.get((State(old_state), State(state)), ())
        return (UPDATE, *(phase_event(*names, fault) for names in phases))

    def payload(self, notification: Any) -> dict[str, Any]:
        event, _, phase = notification.event_type.removeprefix("action_plan.").partition(".")
        data = plan_fields(notification.snapshot)
        if event == "update":
            data["state_update"] = state_update("ActionPlanStateUpdatePayload", notification)
        if phase:
            data["fault"] = fault(notification)
        return versioned(PAYLOADS[event], "1.2", data)


def phase_event(action: str, phase: str, fault: Mapping[str, Any] | None) -> Event:
    return Event(f"{action}.{phase}", ERROR, fault) if phase == "error" else Event(f"{action}.{phase}")


def plan_fields(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that all payloads of a plan have. Without an audit, ``audit`` is null."""
    audit, strategy = structure(snapshot["audit"]), structure(snapshot["strategy"])
    return {
        **terse_plan(snapshot),
        "audit": versioned("TerseAuditPayload", "1.3", terse_audit(audit)) if audit["uuid"] else None,
        "strategy": describe_strategy(strategy),
    }


def terse_audit(audit: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an audit without its related objects."""
    return {
        "uuid": identifier(audit["uuid"]),
        "name": audit["name"],
        "audit_type": audit["audit_type"],
        "state": state_of(audit),
        "parameters": structure(audit["parameters"]),
        "interval": audit["interval"],
        "scope": structure(audit["scope"]),
        "goal_uuid": identifier(audit["goal_uuid"]),
        "strategy_uuid": identifier(audit["strategy_uuid"]),
        "auto_trigger": bool(audit["auto_trigger"]),
        "next_run_time": moment(audit["next_run_time"]),
        "status_message": audit["status_message"],
        **times(audit),
    }


def describe_strategy(strategy: Mapping[str, Any]) -> dict[str, Any] | None:
    if not strategy["uuid"]:
        return None
    data = {
        "uuid": identifier(strategy["uuid"]),
        "name": strategy["name"],
        "display_name": strategy["display_name"],
        "parameters_spec": structure(strategy["parameters_spec"]),
        **times(strategy),
    }
    return versioned("StrategyPayload", "1.0", data)
