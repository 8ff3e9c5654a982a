"""Texts for the events of history."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from watcher_site.messages import cut
from watcher_site.windows.wall_clock import hours_in_words

# What it means that nothing is said of these; of others it is "none".
LEFT_OPEN = {
    "action_types": "all",
    "targets": "anything",
    "window": "every hour",
    "expires_at": "never",
    "start_at": "at once",
}
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def describe_event(event: str) -> str:
    """Return an event as a text: ``action_plan.start`` is "start action plan"."""
    kind, _, verb = event.partition(".")
    return f"{verb} {kind}".replace("_", " ").strip()


def details_in_words(details: Mapping[str, Any]) -> str:
    """Return the details of an event in one line: ``count: 2; name: web → shop``. Empty details are left out."""
    parts = [
        f"{name.replace('_', ' ')}: {value_in_words(value, LEFT_OPEN.get(name, 'none'))}"
        for name, value in details.items()
        if value not in (None, "", {})
    ]
    return cut("; ".join(parts))


def value_in_words(value: Any, nothing: str = "none") -> str:
    """Return a value as people write it.

    Args:
        nothing: what stands for one that is empty.
    """
    if isinstance(value, dict) and value.keys() == {"from", "to"}:
        return f"{value_in_words(value['from'], nothing)} → {value_in_words(value['to'], nothing)}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value in ("", [], {}):
        return nothing
    if isinstance(value, list):
        return ", ".join(map(value_in_words, value))
    return object_in_words(value) if isinstance(value, dict) else text_in_words(str(value))


def object_in_words(value: Mapping[str, Any]) -> str:
    if value.keys() >= {"opens", "closes", "weekdays", "first_day", "last_day"}:
        return hours_in_words(value)
    return ", ".join(f"{name.replace('_', ' ')} {value_in_words(one)}" for name, one in value.items())


def text_in_words(text: str) -> str:
    if not MOMENT.fullmatch(text):
        return text
    return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
