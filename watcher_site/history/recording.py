"""Record who did what, and when: the only functions that write events into history.

Code that changes something for a person calls `record` in the transaction of the change, so that a rollback removes
the event too. A refusal is recorded after its change was rolled back (`watcher_site.history.refusals`).
"""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any
from uuid import UUID

from watcher_site.database.statements import insert
from watcher_site.database.text import make_storable
from watcher_site.messages import cut
from watcher_site.models import HistoryEntry
from watcher_site.models.history import TEXT_LENGTH
from watcher_site.request_context import CallingContext, current_caller

SUCCESS, REFUSED = HistoryEntry.Outcome.SUCCESS, HistoryEntry.Outcome.REFUSED
# Longer values are cut: history records what was done, and is no copy of the data.
LONGEST_VALUE = 255
# Programs disagree on larger numbers in JSON, so these are stored as texts.
LARGEST = 2**63 - 1
MOST_VALUES = 50

Details = Mapping[str, Any]


def record(
    deed: str,
    thing: Any = None,
    *,
    caller: CallingContext | None = None,
    outcome: str = SUCCESS,
    message: str | None = None,
    within: Any = None,
    details: Details | None = None,
) -> HistoryEntry | None:
    """Record in the open transaction what a person did to one object, and return the entry.

    Without a person, that is outside of requests and commands, nothing is written and None is returned.

    Args:
        deed: the event as ``<object>.<verb>``, such as ``action_plan.start``.
        thing: the object: a row, whose UUID and name are kept, or one of these as a text.
        caller: the person, if it is not the one of the request or command.
        message: a text, such as a reason that was given, or the reason of a refusal.
        within: the row that holds the object, such as the plan of an action: its page shows the event, too.
        details: names and values for everybody who may read history: never a secret.
    """
    entry = describe(deed, thing, caller=caller, outcome=outcome, message=message, within=within, details=details)
    insert([entry] if entry else [])
    return entry


def record_many(deed: str, things: Iterable[Any], **options: Any) -> list[HistoryEntry]:
    """Record what a person did to several objects, in one statement. ``options`` are those of `record`."""
    who = options.pop("caller", None) or current_caller()
    entries = [entry for thing in things if (entry := describe(deed, thing, caller=who, **options))] if who else []
    HistoryEntry.objects.bulk_create(entries, batch_size=500)
    return entries


def entries_of(deed: str, thing: Any, **options: Any) -> list[HistoryEntry]:
    """Return what `record` would write, none or one: for `StatefulModel.save_state`, which writes it with the change.

    ``options`` are those of `record`.
    """
    entry = describe(deed, thing, **options)
    return [entry] if entry else []


def describe(
    deed: str,
    thing: Any = None,
    *,
    caller: CallingContext | None = None,
    outcome: str = SUCCESS,
    message: str | None = None,
    within: Any = None,
    details: Details | None = None,
) -> HistoryEntry | None:
    who = current_caller() if caller is None else caller
    if who is None:
        return None
    return HistoryEntry(
        user=text(who.get("user")),
        project_id=text(who.get("project") or project_of(thing, within)),
        request_id=text(who.get("request_id")),
        deed=deed,
        outcome=outcome,
        object_type=deed.partition(".")[0],
        object_uuid=uuid_of(thing),
        object_name=text(name_of(thing)),
        within=uuid_of(within),
        message=cut(make_storable(message or ""), TEXT_LENGTH),
        details={name: brief(value) for name, value in (details or {}).items()},
    )


def uuid_of(thing: Any) -> UUID | None:
    if not isinstance(thing, str):
        return getattr(thing, "uuid", None)
    try:
        return UUID(thing)
    except ValueError:
        return None


def project_of(*things: Any) -> str:
    """Return the project of the first of these that belongs to one: a server or a stack, or what is within that."""
    return next((found for one in things if (found := getattr(one, "project_id", None))), "")


def name_of(thing: Any) -> str:
    """Return the name of an object: empty if it has none; a text that is no UUID is a name itself."""
    if isinstance(thing, str):
        return "" if uuid_of(thing) else thing
    return getattr(thing, "name", None) or getattr(thing, "username", None) or ""


def text(value: Any) -> str:
    return make_storable(str(value or ""))[:TEXT_LENGTH]


def brief(value: Any, depth: int = 4) -> Any:
    """Return a value as JSON has it, with what is long cut short and what is nested deep left out."""
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
        return {text(name): brief(one, depth - 1) for name, one in pairs}
    if isinstance(value, list | tuple | set | frozenset):
        return [brief(one, depth - 1) for one in list(value)[:MOST_VALUES]]
    return cut(make_storable(str(value)), LONGEST_VALUE)


def differences(before: Details, after: Details) -> dict[str, Any]:
    """Return for each name whose value is another afterwards what it was and what it is: details of a change."""
    return {name: {"from": before.get(name), "to": after[name]} for name in after if after[name] != before.get(name)}
