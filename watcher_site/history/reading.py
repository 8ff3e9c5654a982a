"""Filters, exports and texts of history entries, for the API, the console and the commands."""

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from io import StringIO
from typing import Any
from uuid import UUID

import orjson
from django.db.models import Max, Q
from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from watcher_site.database.text import require_storable
from watcher_site.history.event_labels import DETAILS, ROWS, label_of
from watcher_site.history.recording import record
from watcher_site.messages import Text, translate_message
from watcher_site.models import HistoryEntry
from watcher_site.models.history import HistoryQuerySet
from watcher_site.refusals import Invalid
from watcher_site.windows.wall_clock import describe_hours, read_time

SEARCHED = ("object_name", "message", "user", "deed")


def narrow(entries: HistoryQuerySet, filters: Mapping[str, Any]) -> HistoryQuerySet:
    """Return the entries that match all filters, by the names in `FILTERS`. Empty values do not filter.

    Raises:
        Invalid: a value is not valid; the message names the filter and the rule.
    """
    for name, value in filters.items():
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
    moment = read_time("since", value)
    return entries.since(moment) if moment else entries


def before(entries: HistoryQuerySet, value: Any) -> HistoryQuerySet:
    moment = read_time("before", value)
    return entries.before(moment) if moment else entries


def with_text(entries: HistoryQuerySet, value: str) -> HistoryQuerySet:
    """Filter by a text anywhere in an entry, ignoring case. No index supports this: combine it with other filters."""
    found = Q()
    for column in SEARCHED:
        found |= Q(**{f"{column}__icontains": value})
    return entries.filter(found)


FILTERS: dict[str, Callable[[HistoryQuerySet, Any], HistoryQuerySet]] = {
    "user": same("user"),
    "user_id": same("user_id"),
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

COLUMNS = (
    "created_at",
    "user",
    "project_id",
    "request_id",
    "deed",
    "outcome",
    "object_type",
    "object_uuid",
    "object_name",
    "within_uuid",
    "message",
    "details",
    "uuid",
    "user_id",
)
STORED = tuple("within" if name == "within_uuid" else name for name in COLUMNS)
BATCH = 1000
# Spreadsheets evaluate cells with these prefixes as formulas (OWASP, CSV injection). The last four are full-width
# forms, which some accept too.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def rows_of(entries: HistoryQuerySet) -> Iterator[tuple[Any, ...]]:
    """Yield the current entries, the oldest first, with the columns of `COLUMNS`.

    Each batch is a separate query, so that no transaction stays open while the client reads.
    """
    entries = entries.order_by()
    newest, last = entries.aggregate(newest=Max("pk"))["newest"] or 0, 0
    rows = entries.filter(pk__lte=newest).order_by("pk").values_list(*STORED, "pk")
    while last < newest:
        batch = list(rows.filter(pk__gt=last)[:BATCH])
        yield from (row[:-1] for row in batch)
        last = batch[-1][-1] if batch else newest


def csv_lines(entries: HistoryQuerySet) -> Iterator[bytes]:
    """Yield a heading and a line for each entry, in the format of RFC 4180."""
    yield csv_line(COLUMNS)
    for row in rows_of(entries):
        yield csv_line([cell(value) for value in row])


def csv_line(cells: Any) -> bytes:
    line = StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode()


def cell(value: Any) -> str:
    """Return a value as the text of a cell that no spreadsheet evaluates."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return orjson.dumps(value).decode() if value else ""
    text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def json_lines(entries: HistoryQuerySet) -> Iterator[bytes]:
    """Yield a line with a JSON object for each entry."""
    for row in rows_of(entries):
        yield orjson.dumps(dict(zip(COLUMNS, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE)


FORMATS: dict[str, tuple[str, Callable[[HistoryQuerySet], Iterator[bytes]]]] = {
    "csv": ("text/csv; charset=utf-8", csv_lines),
    "jsonl": ("application/x-ndjson", json_lines),
}


def lines_of(entries: HistoryQuerySet, kind: str, filters: Mapping[str, Any]) -> tuple[str, Iterator[bytes]]:
    """Return the media type and the lines of an export of the current entries, and record the export.

    Args:
        filters: the filters of these entries, for the record of the export.

    Raises:
        Invalid: the format is unknown.
    """
    if kind not in FORMATS:
        raise Invalid(f"format: must be one of {', '.join(FORMATS)}, not {kind}.")
    media_type, write = FORMATS[kind]
    newest = entries.order_by().aggregate(newest=Max("pk"))["newest"] or 0
    record("history.export", details={"format": kind, **filters})
    return media_type, write(entries.filter(pk__lte=newest))


def download(entries: HistoryQuerySet, kind: str, filters: Mapping[str, Any]) -> StreamingHttpResponse:
    """Return a response with a file of these entries. Raises the exceptions of `lines_of`."""
    media_type, lines = lines_of(entries, kind, filters)
    name = f"history-{timezone.now():%Y%m%dT%H%M%SZ}.{kind}"
    return StreamingHttpResponse(
        lines, content_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


# The texts for empty values of these details; other empty values are shown as "none".
EMPTY_VALUES = {
    "action_types": _("all"),
    "targets": _("anything"),
    "window": _("every hour"),
    "expires_at": _("never"),
    "start_at": _("at once"),
}
NONE = _("none")
# The details whose numbers are grouped, as those of `ROWS`. Others, such as parameters, are shown as they are stored.
COUNTS = {
    "at most",
    "changed",
    "count",
    "created",
    "failed_logins",
    "memory",
    "number",
    "samples",
    "servers",
    "stacks",
    "vcpus",
}
# The details whose texts are stored messages.
STORED_MESSAGES = {"scope", "secret", "url"}
MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def details_in_words(details: Mapping[str, Any]) -> str:
    """Return the details of an event in one line: ``count: 2; name: web → shop``. Empty details are omitted."""
    parts = [
        f"{label_of(ROWS if name in ROWS else DETAILS, name)}: {detail_in_words(name, value)}"
        for name, value in details.items()
        if value not in (None, "", {})
    ]
    return "; ".join(parts)


def detail_in_words(name: str, value: Any) -> str:
    if name in STORED_MESSAGES and isinstance(value, str):
        return translate_message(value)
    if (name in COUNTS or name in ROWS) and type(value) is int:
        return number_format(value)
    return value_in_words(value, EMPTY_VALUES.get(name, NONE))


def value_in_words(value: Any, nothing: Text = NONE) -> str:
    """Return a value as a text.

    Args:
        nothing: the text for an empty value.
    """
    if isinstance(value, dict) and value.keys() == {"from", "to"}:
        return f"{value_in_words(value['from'], nothing)} → {value_in_words(value['to'], nothing)}"
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if value is None or value in ("", [], {}):
        return str(nothing)
    if isinstance(value, list):
        return ", ".join(map(value_in_words, value))
    return object_in_words(value) if isinstance(value, dict) else text_in_words(str(value))


def object_in_words(value: Mapping[str, Any]) -> str:
    if value.keys() >= {"opens", "closes", "weekdays", "first_day", "last_day"}:
        return describe_hours(value)
    return ", ".join(f"{label_of(DETAILS, name)} {value_in_words(one)}" for name, one in value.items())


def text_in_words(text: str) -> str:
    if not MOMENT.fullmatch(text):
        return text
    moment = timezone.localtime(datetime.fromisoformat(text))
    return f"{moment:%Y-%m-%d %H:%M} {timezone.get_current_timezone_name()}"
