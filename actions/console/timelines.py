"""The operations on a server, each with its events, for the console."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest

from actions.event_details import HOST_RIGHT, generic_message, sees_details
from actions.models import ActionEvent
from actions.models.instance_actions import InstanceAction
from actions.server_history import TIME, Row

SHOWN, MOST = 10, 200


@dataclass(frozen=True)
class KeptEvent:
    """An event of an action that was removed for good, as templates read those that are there."""

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
    found: Any = InstanceAction.objects.of(server.uuid).in_full().select_related("action")
    operations = list(found[: most + 1])
    shown = operations[:most]
    events = events_of([one.action_id for one in shown if one.action_id])
    sees_actions = request.user.has_perm(HOST_RIGHT)
    for one in shown:
        one.events = events[one.action_id] if one.action_id else [read(event) for event in one.kept_events or []]
        one.words = (
            generic_message(one.action.state, one.action.status_message) if one.action and sees_actions else None
        )
    return {
        "operations": shown,
        "more_operations": len(operations) > most,
        "all_operations": most == MOST,
        "sees_details": sees_details(request.user, server.project_id),
    }


def events_of(actions: list[int]) -> dict[int, list[ActionEvent]]:
    events: dict[int, list[ActionEvent]] = defaultdict(list)
    for event in ActionEvent.objects.filter(action__in=actions).order_by("-start_time", "-pk"):
        events[event.action_id].append(event)
    return events


def read(event: Row) -> KeptEvent:
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
