"""The filters of history, shared by the API, the console, the exports and the command."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from django.db.models import Q

from watcher_site.database.text import require_storable
from watcher_site.models import HistoryEntry
from watcher_site.models.history import HistoryQuerySet
from watcher_site.refusals import Invalid
from watcher_site.windows.times import read_time

SEARCHED = ("object_name", "message", "user", "deed")


def narrow(entries: HistoryQuerySet, wishes: Mapping[str, Any]) -> HistoryQuerySet:
    """Return the entries that match all wishes, which are named as in `FILTERS`. Empty values do not filter.

    Raises:
        Invalid: a value makes no sense; the message names the filter and the rule.
    """
    for name, value in wishes.items():
        if value not in ("", None):
            require_storable(name, value)
            entries = FILTERS[name](entries, value)
    return entries


def same(column: str) -> Callable[[HistoryQuerySet, str], HistoryQuerySet]:
    return lambda entries, value: entries.filter(**{column: value})


def with_outcome(entries: HistoryQuerySet, value: str) -> HistoryQuerySet:
    if value not in HistoryEntry.Outcome.values:
        raise Invalid(f"outcome: must be one of {', '.join(HistoryEntry.Outcome.values)}, not {value}.")
    return entries.filter(outcome=value)


def about(entries: HistoryQuerySet, value: Any) -> HistoryQuerySet:
    try:
        return entries.about(UUID(str(value)))
    except ValueError:
        raise Invalid(f"object_uuid: must be a UUID, not {value}.") from None


def since(entries: HistoryQuerySet, value: Any) -> HistoryQuerySet:
    return entries.filter(created_at__gte=read_time("since", value))


def before(entries: HistoryQuerySet, value: Any) -> HistoryQuerySet:
    return entries.filter(created_at__lt=read_time("before", value))


def with_text(entries: HistoryQuerySet, value: str) -> HistoryQuerySet:
    """Filter by a text anywhere in an entry, ignoring case. No index serves this: combine it with other filters."""
    found = Q()
    for column in SEARCHED:
        found |= Q(**{f"{column}__icontains": value})
    return entries.filter(found)


FILTERS: dict[str, Callable[[HistoryQuerySet, Any], HistoryQuerySet]] = {
    "user": same("user"),
    "project_id": same("project_id"),
    "request_id": same("request_id"),
    "deed": same("deed"),
    "outcome": with_outcome,
    "object_type": same("object_type"),
    "object_name": same("object_name"),
    "object_uuid": about,
    "since": since,
    "before": before,
    "text": with_text,
}
