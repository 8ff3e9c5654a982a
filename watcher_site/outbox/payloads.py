"""The parts of payloads: versioned objects, times, state changes and faults.

A fault is an error in the format of ``ExceptionPayload``: the place, the exception, and a message without secrets.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson

from watcher_site.database.text import make_storable
from watcher_site.messages import cut

TIMES = ("created_at", "updated_at", "deleted_at")
DELETED = "DELETED"


def versioned(name: str, version: str, data: Mapping[str, Any], project: str = "watcher") -> dict[str, Any]:
    """Wrap an object with its name and version, as in OpenStack's notifications."""
    prefix = f"{project}_object"
    return {
        f"{prefix}.namespace": project,
        f"{prefix}.name": name,
        f"{prefix}.version": version,
        f"{prefix}.data": dict(data),
    }


def moment(text: str | None) -> str | None:
    """Return a time of a snapshot for a payload: in UTC, to the second."""
    if text is None:
        return None
    read = datetime.fromisoformat(text)
    return f"{read if read.tzinfo is None else read.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"


def identifier(text: str | None) -> str | None:
    """Return a UUID of a snapshot for a payload. SQLite stores UUIDs without hyphens."""
    return text and str(UUID(text))


def structure(value: Any) -> Any:
    """Return a JSON value of a snapshot. SQLite stores JSON as text."""
    return orjson.loads(value) if isinstance(value, str) else value


def times(snapshot: Mapping[str, Any]) -> dict[str, str | None]:
    return {name: moment(snapshot[name]) for name in TIMES}


def state_of(snapshot: Mapping[str, Any]) -> Any:
    """Return the state of an object for a payload, which is DELETED for a deleted one."""
    return DELETED if snapshot["deleted_at"] else snapshot["state"]


def state_update(name: str, notification: Any) -> dict[str, Any]:
    """Return the state change for a payload, with nulls if the state did not change."""
    old_state, now = notification.old_state, notification.snapshot
    state = state_of(now)
    changed = old_state is not None and old_state != state
    data = {
        "old_state": old_state if changed else None,
        "state": state if changed else None,
        "status_message": now["status_message"] if changed else None,
    }
    return versioned(name, "1.1", data)


def fault(notification: Any) -> dict[str, Any] | None:
    """Return the fault of an error event: the recorded one, or else one with the status message of the object."""
    if not notification.event_type.endswith(".error"):
        return None
    found = notification.fault or {
        "module_name": "",
        "function_name": "",
        "exception": "Failure",
        "exception_message": notification.snapshot["status_message"] or "",
    }
    return versioned("ExceptionPayload", "1.0", found)


def describe_fault(problem: BaseException, message: str) -> dict[str, Any]:
    """Return the fault of an event.

    Args:
        message: a text for users: never a path, a query or a secret.
    """
    module, function = origin(problem)
    return make_fault(type(problem).__name__, message, module, function)


def make_fault(exception: str, message: str, module: str = "", function: str = "") -> dict[str, Any]:
    return {
        "module_name": module,
        "function_name": function,
        "exception": exception,
        "exception_message": cut(make_storable(message)),
    }


def origin(problem: BaseException) -> tuple[str, str]:
    """Return the names of the module and the function that raised an exception."""
    trace = problem.__traceback__
    if trace is None:
        return "", ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_globals.get("__name__", ""), trace.tb_frame.f_code.co_name
