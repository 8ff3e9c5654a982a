"""Recording of events in history: who did what, and when.

Code that makes a change for a user calls `record` in the transaction of the change, so that a rollback removes the
event too. A refusal is recorded in a separate transaction, after that of the change was rolled back. Repeated requests
cannot fill the table: each process records the same refusal once a minute, and all refusals beyond a limit as one
event.
"""

from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from threading import Lock
from time import monotonic
from typing import Any
from uuid import UUID

from django.utils.translation import gettext_noop as _
from django.utils.translation import override
from django_fsm import ConcurrentTransition, TransitionNotAllowed

from watcher_site.database.text import make_storable
from watcher_site.database.writes import insert
from watcher_site.messages import StoredMessage, cut, shorten
from watcher_site.models import HistoryEntry
from watcher_site.models.history import TEXT_LENGTH
from watcher_site.refusals import Conflict, Refused, WrongState
from watcher_site.request_context import CallingContext, current_caller

SUCCESS, REFUSED = HistoryEntry.Outcome.SUCCESS, HistoryEntry.Outcome.REFUSED
# Longer values are cut: history records events, not copies of data.
LONGEST_VALUE = 255
# JSON parsers differ on larger numbers, so these are stored as texts.
LARGEST = 2**63 - 1
MOST_VALUES = 50
# The limit of refusals that a process records per minute.
MOST_A_MINUTE = 120
MINUTE = 60.0
CHANGED_AT_THE_SAME_TIME = StoredMessage(_("Its state was changed by someone else at the same time."))
PERMISSION_DENIED = StoredMessage(_("Permission denied."))
STATE_DOES_NOT_ALLOW = StoredMessage(_("Its state does not allow it."))
READING = ".view"

Details = Mapping[str, Any]


def record(
    event: str,
    target: Any = None,
    *,
    caller: CallingContext | None = None,
    outcome: str = SUCCESS,
    message: str | None = None,
    within: Any = None,
    details: Details | None = None,
) -> HistoryEntry | None:
    """Record an operation of a user on one object in the open transaction, and return the entry.

    Without a user, that is, outside of requests and commands, nothing is written and None is returned.

    Args:
        event: the operation as ``<object>.<verb>``, such as ``action_plan.start``.
        target: the object: a row, whose UUID and name are stored, or one of these as a text.
        caller: the user, if it is not the one of the request or command.
        message: a text, such as the user's reason, or the reason of a refusal.
        within: the row that contains the object, such as the plan of an action, whose page shows the event, too.
        details: names and values for all readers of history: never a secret.
    """
    entries = entries_of(
        event, target, caller=caller, outcome=outcome, message=message, within=within, details=details
    )
    insert(entries)
    return entries[0] if entries else None


def record_many(
    event: str, targets: Iterable[Any], within: Callable[[Any], Any] = lambda _: None, **options: Any
) -> list[HistoryEntry]:
    """Record an operation of a user on several objects, in one statement.

    Args:
        within: returns the row that contains an object.
        options: those of `record`.
    """
    user = options.pop("caller", None) or current_caller()
    if user is None:
        return []
    entries = [
        entry
        for target in targets
        for entry in entries_of(event, target, caller=user, within=within(target), **options)
    ]
    HistoryEntry.objects.bulk_create(entries, batch_size=500)
    return entries


def entries_of(
    event: str,
    target: Any = None,
    *,
    caller: CallingContext | None = None,
    outcome: str = SUCCESS,
    message: str | None = None,
    within: Any = None,
    details: Details | None = None,
) -> list[HistoryEntry]:
    """Return the entries that `record` would write: one, or none without a user.

    `StatefulModel.save_state` writes them with the change. The arguments are those of `record`.
    """
    user = current_caller() if caller is None else caller
    if user is None:
        return []
    # The project of the object, such as a server or a stack, or of the object that contains it.
    project = user.get("project") or getattr(target, "project_id", None) or getattr(within, "project_id", None)
    uuid, name = identify(target)
    entry = HistoryEntry(
        user=make_storable(user.get("user") or "", TEXT_LENGTH),
        user_id=make_storable(user.get("user_id") or "", TEXT_LENGTH) or None,
        project_id=make_storable(project or "", TEXT_LENGTH),
        request_id=make_storable(user.get("request_id") or "", TEXT_LENGTH),
        deed=event,
        outcome=outcome,
        object_type=event.partition(".")[0],
        object_uuid=uuid,
        object_name=make_storable(name, TEXT_LENGTH),
        within=identify(within)[0],
        message=cut(make_storable(message or ""), TEXT_LENGTH),
        details={name: shorten_value(value) for name, value in details.items()} if details else {},
    )
    return [entry]


def identify(target: Any) -> tuple[UUID | None, str]:
    """Return the UUID and the name of an object, as far as it has them. A text is either of them."""
    if not isinstance(target, str):
        name = getattr(target, "name", None) or getattr(target, "username", None)
        return getattr(target, "uuid", None), name or ""
    try:
        return UUID(target), ""
    except ValueError:
        return None, target


def shorten_value(value: Any, depth: int = 4) -> Any:
    """Return a JSON value in which long texts and lists are cut and deep nesting is omitted."""
    if (
        value is None
        or (isinstance(value, int) and abs(value) <= LARGEST)
        or (isinstance(value, float) and isfinite(value))
    ):
        return value
    if isinstance(value, Mapping | list | tuple | set | frozenset) and not depth:
        return "…"
    if isinstance(value, Mapping):
        pairs = list(value.items())[:MOST_VALUES]
        return {make_storable(str(name or ""), TEXT_LENGTH): shorten_value(one, depth - 1) for name, one in pairs}
    if isinstance(value, list | tuple | set | frozenset):
        return [shorten_value(one, depth - 1) for one in list(value)[:MOST_VALUES]]
    return shorten(make_storable(str(value)), LONGEST_VALUE)


def differences(before: Details, after: Details) -> dict[str, Any]:
    """Return the previous and the new value of each name whose value changed, as details of a change."""
    return {name: {"from": before.get(name), "to": after[name]} for name in after if after[name] != before.get(name)}


class RateLimit:
    """Allows the first event of each kind in a minute, and ``most`` events in total. Thread-safe."""

    def __init__(self, most: int = MOST_A_MINUTE) -> None:
        self.most, self.lock = most, Lock()
        self.forget()

    def forget(self) -> None:
        self.began, self.seen = monotonic(), set[Any]()

    def allows(self, kind: Any) -> bool:
        with self.lock:
            if monotonic() - self.began >= MINUTE:
                self.forget()
            if kind in self.seen or len(self.seen) >= self.most:
                return False
            self.seen.add(kind)
            return True

    @property
    def is_full(self) -> bool:
        return len(self.seen) >= self.most


refusal_limit = RateLimit()
# A separate limit, so that attempts to read many objects cannot suppress the refusals of changes.
reading_refusal_limit = RateLimit()


def is_recorded(problem: BaseException) -> bool:
    """Return whether history records a refusal: only refusals for the state of an object, not for invalid input."""
    return isinstance(problem, Conflict | WrongState | ConcurrentTransition | TransitionNotAllowed)


def record_refusal(event: str, target: Any, message: str, within: Any = None) -> None:
    """Record a refused operation of a user, unless the same refusal was recorded in this minute.

    Outside of requests and commands, nothing is written. The arguments are those of `record`.
    """
    user = current_caller()
    about = tuple(str(getattr(one, "uuid", one)) for one in (target, within))
    limit = reading_refusal_limit if event.endswith(READING) else refusal_limit
    if user is None or not limit.allows((user.identity, event, about, message)):
        return
    record(event, target, caller=user, outcome=REFUSED, message=message, within=within)


def describe_refusal(problem: BaseException) -> str:
    """Return the reason of a refusal without the parts that only API clients need."""
    if isinstance(problem, Refused):
        with override(None):
            return str(problem)
    if isinstance(problem, ConcurrentTransition):
        return CHANGED_AT_THE_SAME_TIME.text
    return STATE_DOES_NOT_ALLOW.text
