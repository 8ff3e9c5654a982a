"""The events that there are, and the patterns that stand for them."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from typing import Any

from watcher_site import plugins
from watcher_site.outbox.listeners import matches
from watcher_site.refusals import Invalid

PATTERN = re.compile(r"[a-z0-9_.*-]{1,63}")
MOST_PATTERNS = 50


@cache
def known_event_types() -> frozenset[str]:
    """Return the event types of all kinds of notifications."""
    kinds: Iterable[Any] = plugins.load("NOTIFICATION_KINDS").values()
    return frozenset(f"{kind.name}.{name}" for kind in kinds for name in kind.event_names)


def checked_event_types(patterns: Any) -> list[str]:
    """Return the patterns of event types, each once.

    Raises:
        Invalid: the message names the pattern that makes no sense, or stands for no event.
    """
    if not isinstance(patterns, list | tuple) or not 0 < len(patterns) <= MOST_PATTERNS:
        raise Invalid(f"event_types: must be a list of 1 to {MOST_PATTERNS} patterns.")
    for pattern in patterns:
        if not isinstance(pattern, str) or not PATTERN.fullmatch(pattern):
            raise Invalid("event_types: a pattern is an event type, in which * stands for any letters: action.*")
        if not any(matches([pattern], known) for known in known_event_types()):
            raise Invalid(f"event_types: there is no event {pattern}; {nearest(pattern)}.")
    return list(dict.fromkeys(patterns))


def nearest(pattern: str) -> str:
    """Return a hint at the event types for a pattern that matches none."""
    known = sorted(known_event_types())
    if close := get_close_matches(pattern, known, n=1):
        return f"there is {close[0]}"
    return f"events begin with {', '.join(sorted({name.partition('.')[0] for name in known}))}"
