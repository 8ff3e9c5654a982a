"""Notifications about actions: events, payloads and versions (docs/compatibility.md, "Notifications")."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Aggregate, JSONField, OuterRef, Subquery, TextField
from django.db.models.functions import Cast, JSONObject

from actions.models import Action, ActionParent
from watcher_site.outbox.kinds import ERROR, LIFE, UPDATE, Event, Kind, Summary, phases_of
from watcher_site.outbox.payloads import TIMES, fault, identifier, state_of, state_update, structure, times, versioned

State = Action.State
START, END = Event("execution.start"), Event("execution.end")
CANCEL_START, CANCEL_END = Event("cancel.start"), Event("cancel.end")
# The events sent before and after the update event of a change, by old and new state. Receivers know the
# order: an action is still PENDING when its execution starts.
BEFORE = {
    (State.PENDING, State.ONGOING): START,
    (State.ONGOING, State.CANCELLING): CANCEL_START,
    (State.SUSPENDED, State.CANCELLING): CANCEL_START,
    (State.PENDING, State.CANCELLING): CANCEL_START,
    (State.ONGOING, State.CANCELLED): CANCEL_START,
    (State.SUSPENDED, State.CANCELLED): CANCEL_START,
}
ABORTED = frozenset({State.ONGOING, State.SUSPENDED, State.CANCELLING})
PAYLOADS = {
    "create": "ActionCreatePayload",
    "update": "ActionUpdatePayload",
    "delete": "ActionDeletePayload",
    "execution": "ActionExecutionPayload",
    "cancel": "ActionCancelPayload",
}
PLAN = ("uuid", "state", "global_efficacy", "status_message", "created_at", "updated_at", "deleted_at")


class UUIDs(Aggregate):
    """The UUIDs of rows as a JSON array, in the order of their creation."""

    function = "JSON_GROUP_ARRAY"
    output_field = JSONField()

    def as_postgresql(self, compiler: Any, connection: Any, **_: Any) -> tuple[str, Any]:
        return self.as_sql(compiler, connection, function="JSONB_AGG")


def parents() -> Subquery:
    links = ActionParent.objects.filter(child=OuterRef("pk")).order_by().values("child")
    return Subquery(links.annotate(found=UUIDs(Cast("parent__uuid", TextField()))).values("found"))


class ActionNotifications(Kind):
    name = "action"
    label, page = "Action", "actions:detail"
    event_names = (*LIFE, *phases_of("execution", "cancel"))

    @property
    def model(self) -> type[Action]:
        return Action

    def snapshot(self) -> Mapping[str, Any]:
        plan = {name: f"action_plan__{name}" for name in PLAN}
        references = {"audit_uuid": "action_plan__audit__uuid", "strategy_uuid": "action_plan__strategy__uuid"}
        columns = ("uuid", "action_type", "input_parameters", "state", "status_message", *TIMES)
        return {
            **{name: name for name in columns},
            "parents": parents(),
            "plan": JSONObject(**plan, **references),
        }

    def events(self, instance: Action, old_state: str) -> Sequence[Event]:
        if instance.has_derived and instance.state == State.ONGOING:
            return (UPDATE,)  # It continues after its derived actions, and has started before.
        return super().events(instance, old_state)

    def between(self, old_state: str, state: str, fault: Mapping[str, Any] | None = None) -> Sequence[Event]:
        if old_state == state:
            return (UPDATE,)
        before = BEFORE.get((State(old_state), State(state)))
        return (*((before,) if before else ()), UPDATE, *events_after(old_state, state, fault))

    def summary(self, snapshot: Mapping[str, Any]) -> Summary:
        """Return the description of an action, with its type and its plan."""
        plan = identifier(structure(snapshot["plan"])["uuid"])
        name = f"{snapshot['action_type']} of action plan {plan}"
        return Summary(name, state_of(snapshot), snapshot["status_message"])

    def payload(self, notification: Any) -> dict[str, Any]:
        operation, _, phase = notification.event_type.removeprefix("action.").partition(".")
        data = describe_action_fields(notification.snapshot)
        if operation == "update":
            data["state_update"] = state_update("ActionStateUpdatePayload", notification)
        if phase == "start":
            data["state"] = notification.old_state
        if phase:
            data["fault"] = fault(notification)
        return versioned(PAYLOADS[operation], "1.1", data)


def events_after(old_state: str, state: str, fault: Mapping[str, Any] | None) -> Sequence[Event]:
    is_cancel = old_state == State.CANCELLING
    if state == State.FAILED:
        return (Event(f"{'cancel' if is_cancel else 'execution'}.error", ERROR, fault),)
    if state == State.SUCCEEDED:
        return (END, CANCEL_END) if is_cancel else (END,)
    return (CANCEL_END,) if state == State.CANCELLED and old_state in ABORTED else ()


def describe_action_fields(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an action that all its payloads contain."""
    return {
        "uuid": identifier(snapshot["uuid"]),
        "action_type": snapshot["action_type"],
        "input_parameters": structure(snapshot["input_parameters"]),
        "state": state_of(snapshot),
        "parents": [identifier(parent) for parent in structure(snapshot["parents"]) or ()],
        "status_message": snapshot["status_message"],
        **times(snapshot),
        "action_plan": describe_plan(structure(snapshot["plan"])),
    }


def describe_plan(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return the short form of a plan, for references."""
    return versioned("TerseActionPlanPayload", "1.2", terse_plan(plan))


def terse_plan(plan: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "uuid": identifier(plan["uuid"]),
        "state": state_of(plan),
        "global_efficacy": structure(plan["global_efficacy"]),
        "audit_uuid": identifier(plan["audit_uuid"]),
        "strategy_uuid": identifier(plan["strategy_uuid"]),
        "status_message": plan["status_message"],
        **times(plan),
    }
