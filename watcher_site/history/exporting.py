"""History as a file, for a spreadsheet or for another program: however long it is, little of it is in memory."""

import csv
from collections.abc import Callable, Iterator, Mapping
from io import StringIO
from typing import Any

import orjson
from django.db.models import Max
from django.http import StreamingHttpResponse
from django.utils import timezone

from watcher_site.history.recording import record
from watcher_site.models.history import HistoryQuerySet
from watcher_site.refusals import Invalid

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
)
STORED = tuple("within" if name == "within_uuid" else name for name in COLUMNS)
BATCH = 1000
# A spreadsheet takes a cell that begins so for a formula, and computes it (OWASP, CSV injection). The last four are
# those of full width, which some take likewise.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def rows_of(entries: HistoryQuerySet) -> Iterator[tuple[Any, ...]]:
    """Yield the entries that there are now, the oldest first, with the columns of `COLUMNS`.

    Each batch is a query of its own: nothing is held open for the time that somebody takes to read it all.
    """
    entries = entries.order_by()
    newest, last = entries.aggregate(newest=Max("pk"))["newest"] or 0, 0
    rows = entries.filter(pk__lte=newest).order_by("pk").values_list(*STORED, "pk")
    while last < newest:
        batch = list(rows.filter(pk__gt=last)[:BATCH])
        yield from (row[:-1] for row in batch)
        last = batch[-1][-1] if batch else newest


def csv_lines(entries: HistoryQuerySet) -> Iterator[bytes]:
    """Yield a heading and a line for each entry, as RFC 4180 has them."""
    yield csv_line(COLUMNS)
    for row in rows_of(entries):
        yield csv_line([cell(value) for value in row])


def csv_line(cells: Any) -> bytes:
    line = StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode()


def cell(value: Any) -> str:
    """Return a value as a cell that no spreadsheet computes."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return orjson.dumps(value).decode() if value else ""
    text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def json_lines(entries: HistoryQuerySet) -> Iterator[bytes]:
    """Yield a JSON object a line for each entry."""
    for row in rows_of(entries):
        yield orjson.dumps(dict(zip(COLUMNS, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE)


FORMATS: dict[str, tuple[str, Callable[[HistoryQuerySet], Iterator[bytes]]]] = {
    "csv": ("text/csv; charset=utf-8", csv_lines),
    "jsonl": ("application/x-ndjson", json_lines),
}


def lines_of(entries: HistoryQuerySet, kind: str, filters: Mapping[str, Any]) -> tuple[str, Iterator[bytes]]:
    """Return the media type and the lines of an export of the entries that there are now, and record the export.

    Args:
        filters: the filters that the entries were selected by, which are recorded.

    Raises:
        Invalid: there is no such format.
    """
    if kind not in FORMATS:
        raise Invalid(f"format: must be one of {', '.join(FORMATS)}, not {kind}.")
    media_type, write = FORMATS[kind]
    newest = entries.order_by().aggregate(newest=Max("pk"))["newest"] or 0
    record("history.export", details={"format": kind, **filters})
    return media_type, write(entries.filter(pk__lte=newest))


def download(entries: HistoryQuerySet, kind: str, filters: Mapping[str, Any]) -> StreamingHttpResponse:
    """Answer with a file of these entries. Raises: as `lines_of`."""
    media_type, lines = lines_of(entries, kind, filters)
    name = f"history-{timezone.now():%Y%m%dT%H%M%SZ}.{kind}"
    return StreamingHttpResponse(
        lines, content_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
