"""Template tags of actions: names, messages, durations, and the operations on a server with their events."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django import template
from django.http import HttpRequest
from django.utils.safestring import SafeString

from actions.console.descriptions import describe_parameters, result_label, state_word
from actions.event_details import HOST_RIGHT, generic_message, sees_details, without_error
from actions.messages import phase_label
from actions.models import Action, ActionEvent
from actions.models.instance_actions import InstanceAction
from actions.models.naming import resource
from actions.server_history import TIME, Row
from watcher_site.authorization.permissions import may
from watcher_site.messages import UUIDS, translate_message
from watcher_site.models import HistoryEntry
from watcher_site.templatetags.console import linked

register = template.Library()
register.filter(resource)
register.filter(describe_parameters)
register.filter(phase_label)
register.filter(result_label)
register.filter(state_word)

SHOWN, MOST = 10, 200


@dataclass(frozen=True)
class KeptEvent:
    """An event of a deleted action, with the attributes of `ActionEvent` that templates use."""

    event: str
    start_time: datetime
    finish_time: datetime | None
    result: str | None
    details: str | None

    @property
    def is_fault(self) -> bool:
        return self.result in ActionEvent.FAULTS


def operations_on(server: Any, request: HttpRequest) -> dict[str, Any]:
    """Return the operations on a server, the newest first, up to the requested number, with two queries."""
    most = MOST if "operations" in request.GET else SHOWN
    queryset: Any = InstanceAction.objects.of(server.uuid).in_full().select_related("action")
    operations = list(queryset[: most + 1])
    shown = operations[:most]
    events = events_of([operation.action_id for operation in shown if operation.action_id])
    sees_actions = may(request.user, HOST_RIGHT)
    for operation in shown:
        operation.events = (
            events[operation.action_id]
            if operation.action_id
            else [kept_event(event) for event in operation.kept_events or []]
        )
        operation.words = (
            translate_message(generic_message(operation.action.state, operation.action.status_message) or "")
            if operation.action and sees_actions
            else None
        )
    return {
        "operations": shown,
        "more_operations": len(operations) > most,
        "all_operations": most == MOST,
        "sees_details": sees_details(request.user, server.project_id),
    }


def events_of(actions: list[int]) -> dict[int, list[ActionEvent]]:
    events: dict[int, list[ActionEvent]] = defaultdict(list)
    for event in (
        ActionEvent.objects.filter(action__in=actions).select_related("action").order_by("-start_time", "-pk")
    ):
        events[event.action_id].append(event)
    return events


def kept_event(event: Row) -> KeptEvent:
    finish = event["finish_time"]
    return KeptEvent(
        event=event["event"],
        start_time=moment(event["start_time"]),
        finish_time=moment(finish) if finish else None,
        result=event["result"],
        details=event["details"],
    )


def moment(text: str) -> datetime:
    return datetime.strptime(text, TIME).replace(tzinfo=UTC)


@register.inclusion_tag("actions/_operations.html", takes_context=True)
def server_operations(context: dict[str, Any], server: Any) -> dict[str, Any]:
    """Show the operations on a server, and reasons of failures if the user has the right to see them."""
    request = context["request"]
    return {"request": request, "perms": context["perms"], **operations_on(server, request)}


@register.inclusion_tag("actions/_logs.html", takes_context=True)
def action_logs(context: dict[str, Any], action: Action) -> dict[str, Any]:
    """Show how to find an action in the logs, with the requests that concerned it for users who may see history."""
    requests: Any = []
    if may(context["request"].user, "watcher_site.view_historyentry"):
        about = HistoryEntry.objects.about_action(action.uuid, action.action_plan.uuid)
        start = HistoryEntry.objects.filter(object_uuid=action.action_plan.uuid, deed="action_plan.start")
        requests = (about | start).exclude(request_id="").order_by("-pk")[:SHOWN]
    return {"action": action, "requests": list(requests)}


@register.filter
def message_for(action: Action, sees_details: bool) -> str:
    """Return the message of an action, without the reason of a failure for users who may not read it."""
    message = action.status_message if sees_details else generic_message(action.state, action.status_message)
    return translate_message(message or "")


@register.filter
def is_clean_up(event: Any) -> bool:
    """Return whether an event is the post_condition of an action whose pre_condition failed: it did not begin."""
    action = getattr(event, "action", None)
    return event.event == "post_condition" and action is not None and action.start_time is None


@register.filter
def naming(text: str, action: Action | None) -> SafeString:
    """Return a text about an action with names instead of the UUIDs of the action and its object."""
    names = action.known_names if action else {}
    return linked(text, {UUID(uuid): name for uuid, name in names.items() if UUIDS.fullmatch(uuid)})


@register.filter
def outputs_for(action: Action, sees_details: bool) -> dict[str, Any]:
    return action.outputs if sees_details else without_error(action.outputs)
