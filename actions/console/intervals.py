"""The periods in which an action ran, was suspended, or waited for its next attempt, derived from its events."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import zip_longest
from typing import Any, NamedTuple

from actions.models import Action, ActionEvent

# Requests to the action, which have no duration.
SIGNALS = ("signal_", "timeout")
SUSPEND, RESUME = "suspend", "resume"
# Phases that end a suspension without a resume, after the process that executed the action was lost.
RECOVERIES = frozenset({RESUME, "recover", "abort"})
# A shorter gap between two phases is not an interval.
GAP = timedelta(seconds=1)


class Kind(StrEnum):
    RUNNING = "running"
    SUSPENDED = "suspended"
    DEFERRED = "deferred"
    WAITING = "waiting"
    """Waiting for its derived actions."""
    QUEUED = "queued"
    """Waiting for a free process after its parents ended."""


AFTER = {ActionEvent.Result.RETRY: Kind.DEFERRED, ActionEvent.Result.WAITING: Kind.WAITING}


class Interval(NamedTuple):
    kind: Kind
    start: datetime
    end: datetime
    attempt: int = 0
    is_open: bool = False
    """Whether it has not ended yet; ``end`` is then the current time."""
    host: str = ""
    has_failed: bool = False

    @property
    def duration(self) -> timedelta:
        return self.end - self.start


def intervals_of(action: Action, events: Iterable[Any], now: datetime) -> list[Interval]:
    """Return the intervals of an action in chronological order. ``events`` are all its events, oldest first."""
    events = [event for event in events if not event.event.startswith(SIGNALS)]
    pauses = suspensions(events, action, now)
    phases = [event for event in events if event.event not in (SUSPEND, RESUME)]
    intervals: list[Interval] = []
    for phase, following in zip_longest(phases, phases[1:]):
        end = phase.finish_time or now
        has_failed = phase.result == ActionEvent.Result.ERROR
        is_open = phase.finish_time is None
        running = Interval(Kind.RUNNING, phase.start_time, end, phase.attempt, is_open, phase.host, has_failed)
        intervals += continue_run(intervals, without_pauses(running, pauses))
        if (kind := AFTER.get(phase.result)) and (following or action.state == Action.State.PENDING):
            until = following.start_time if following else now
            intervals.append(Interval(kind, end, until, phase.attempt, following is None))
    return sorted([*intervals, *pauses], key=lambda interval: (interval.start, interval.end))


def suspensions(events: Sequence[Any], action: Action, now: datetime) -> list[Interval]:
    """Return the intervals from each suspension to the resumption, the recovery or the end of the action."""
    intervals: list[Interval] = []
    since: Any = None
    for event in events:
        if event.event == SUSPEND:
            since = event
        elif since and event.event in RECOVERIES:
            intervals.append(Interval(Kind.SUSPENDED, since.start_time, event.start_time, since.attempt))
            since = None
    if since:
        is_open = action.state == Action.State.SUSPENDED
        end = now if is_open else action.end_time or since.start_time
        intervals.append(Interval(Kind.SUSPENDED, since.start_time, end, since.attempt, is_open))
    return intervals


def without_pauses(running: Interval, pauses: Iterable[Interval]) -> list[Interval]:
    """Return the parts of an interval outside of these pauses, which are in chronological order."""
    parts = []
    for pause in pauses:
        if running.start < pause.end and pause.start < running.end:
            parts.append(running._replace(end=pause.start, is_open=False))
            running = running._replace(start=min(pause.end, running.end))
    return [interval for interval in (*parts, running) if interval.end > interval.start]


def continue_run(intervals: list[Interval], parts: list[Interval]) -> list[Interval]:
    """Return the parts; the first one is joined with the last interval, which is removed, if it is the same run."""
    if not intervals or not parts:
        return parts
    last, first = intervals[-1], parts[0]
    if (last.kind, last.attempt) != (first.kind, first.attempt) or first.start - last.end >= GAP:
        return parts
    intervals.pop()
    return [first._replace(start=last.start, has_failed=last.has_failed or first.has_failed), *parts[1:]]


def total_duration(intervals: Iterable[Interval], kind: Kind) -> timedelta:
    return sum((interval.duration for interval in intervals if interval.kind == kind), timedelta())
