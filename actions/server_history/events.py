"""The events of what was done to a server, as they go out: to each person as much as they may see."""

from collections.abc import Iterable, Mapping
from hashlib import sha224
from typing import Any

from django.db.models import QuerySet

from actions.models import ActionEvent
from actions.models.instance_actions import InstanceAction
from actions.server_history.lists import Row, written

COLUMNS = ("event", "start_time", "finish_time", "result", "details", "host")


def read_events(found: InstanceAction) -> list[Row]:
    """Return the events of an operation, the newest first: one query, and none where they were removed for good."""
    if found.action_id is None:
        return list(found.kept_events or [])
    return texts_of(ActionEvent.objects.filter(action=found.action_id).order_by("-start_time", "-pk"))


def texts_of(events: QuerySet[ActionEvent]) -> list[Row]:
    """Return events as JSON values, with the details of faults only (docs/compatibility.md, "Event details")."""
    return [plain(event) for event in events.values(*COLUMNS)]


def plain(event: Mapping[str, Any]) -> Row:
    is_fault = event["result"] in ActionEvent.FAULTS
    return {
        "event": event["event"],
        "start_time": written(event["start_time"]),
        "finish_time": written(event["finish_time"]),
        "result": event["result"],
        "details": event["details"] if is_fault else None,
        "host": event["host"],
    }


def shown(events: Iterable[Row], *, project: str, host: bool, details: bool) -> list[Row]:
    """Return events with the names of hosts, and what failed, for those only who may see either.

    Args:
        project: that of the server: `host_id` follows from it.
    """
    return [show(event, project, host, details) for event in events]


def show(event: Row, project: str, host: bool, details: bool) -> Row:
    told = {name: event[name] for name in ("event", "start_time", "finish_time", "result")}
    told["hostId"] = host_id(project, event["host"])
    if host:
        told["host"] = event["host"] or None
    if details:
        told["details"] = event["details"]
    return told


def host_id(project: str, host: str) -> str:
    """Return what tells machines apart within a project, without naming them, as Nova makes it."""
    return sha224(f"{project}{host}".encode()).hexdigest() if host else ""
