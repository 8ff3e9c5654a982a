"""Output of objects as a table, JSON or CSV."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from io import StringIO
from itertools import chain
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from watcher_site.api.media import plain
from watcher_site.api.serializers import Row
from watcher_site.console.naming import find_plain_names, name_objects_plainly
from watcher_site.history.reading import cell, csv_line
from watcher_site.messages import without_controls

TABLE, JSON, CSV = FORMATS = ("table", "json", "csv")
SHORT_LENGTH = 8
UUID_TEXT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# The parameters of an action with the UUID and the name of its object.
NAMING = {"resource_id", "resource_name"}
# Cells are not wrapped, so that identifiers can be copied. Terminals wrap long lines.
UNLIMITED_WIDTH = 100_000
STYLES = {"SUCCEEDED": "green", "FAILED": "bold red", "SKIPPED": "yellow", "CANCELLED": "magenta", "ERROR": "bold red"}


def render(table: Table, stream: Any, no_color: bool, force_color: bool) -> list[str]:
    """Return the lines of a table for a stream, with colours if the stream is a terminal."""
    text = StringIO()
    console = Console(
        file=text,
        width=UNLIMITED_WIDTH,
        color_system=None if no_color else "auto",
        force_terminal=stream.isatty() or force_color,
        highlight=False,
        markup=False,
        emoji=False,
    )
    console.print(table)
    return [line.rstrip() for line in text.getvalue().splitlines()]


class Printer:
    """Prints rows of the API in one of `FORMATS`.

    Args:
        stream: the output stream.
        format: one of `FORMATS`.
        times: the fields that are shown without fractions of a second in tables.
        identifier: the field that is shown in full in tables. Other UUIDs are shortened.
    """

    def __init__(
        self, stream: Any, format: str, times: Collection[str], identifier: str, options: dict[str, Any]
    ) -> None:
        self.stream, self.format = stream, format
        self.times, self.identifier = times, identifier
        self.options = options

    def print_list(self, pages: Iterable[list[Row]], fields: Sequence[str], *, is_chosen: bool) -> None:
        """Print these fields of rows. JSON has all fields unless fields were chosen."""
        # Errors of arguments are raised by the first page, before anything is printed.
        pages = iter(pages)
        first = next(pages, [])
        decoded = map(decode, chain([first], pages))
        rows = chain.from_iterable(map(name_objects_in_messages, decoded) if self.format == TABLE else decoded)
        if self.format == JSON:
            self.print_json_list(pick(rows, fields) if is_chosen else rows)
        elif self.format == CSV:
            self.print_csv(rows, fields)
        else:
            self.print_table(rows, fields)

    def print_one(self, row: Row, fields: Sequence[str]) -> None:
        """Print these fields of one row, in a table with a line for each."""
        rows = decode([row])
        (decoded,) = pick(name_objects_in_messages(rows) if self.format == TABLE else rows, fields)
        if self.format == JSON:
            self.write(to_json(decoded))
        elif self.format == CSV:
            self.print_csv([decoded], fields)
        else:
            table = make_table("FIELD", "VALUE")
            for field in fields:
                table.add_row(field, self.text_of(field, decoded[field], shortens=False))
            self.print(table)

    def print_json_list(self, rows: Iterable[Row]) -> None:
        separator = "[\n"
        for row in rows:
            self.write(f"{separator}{to_json(row)}", ending="")
            separator = ",\n"
        self.write("[]" if separator == "[\n" else "\n]")

    def print_csv(self, rows: Iterable[Row], fields: Sequence[str]) -> None:
        self.write(csv_line(fields).decode(), ending="")
        for row in rows:
            self.write(csv_line([csv_cell(row[field]) for field in fields]).decode(), ending="")

    def print_table(self, rows: Iterable[Row], fields: Sequence[str]) -> None:
        table = make_table()
        for field in fields:
            table.add_column(heading(field, self.times))
        for row in rows:
            table.add_row(*(self.text_of(field, row[field]) for field in fields))
        self.print(table)

    def text_of(self, field: str, value: Any, shortens: bool = True) -> Text:
        """Return a value as a cell of a table, without control characters, which a terminal would interpret."""
        text = table_cell(value)
        if field in self.times:
            text = text[:19].replace("T", " ")
        elif shortens and field != self.identifier and UUID_TEXT.fullmatch(text):
            text = text[:SHORT_LENGTH]
        text = " ".join(without_controls(text).split())
        return Text(text, style=STYLES.get(text, ""))

    def print(self, table: Table) -> None:
        options = self.options
        for line in render(table, self.stream, options.get("no_color", False), options.get("force_color", False)):
            self.write(line)

    def write(self, text: str, ending: str = "\n") -> None:
        self.stream.write(text + ending, ending="")


def make_table(*headings: str) -> Table:
    return Table(*headings, box=None, pad_edge=False, header_style="bold")


def heading(field: str, times: Collection[str]) -> str:
    """Return the heading of a column: ``audit_uuid`` is AUDIT, ``OS-EXT-SRV-ATTR:host`` is HOST."""
    text = field.rpartition(":")[2].removesuffix("_uuid").replace("_", " ").upper()
    return f"{text} (UTC)" if field in times else text


def decode(rows: list[Row]) -> list[Row]:
    """Return rows as clients of the API receive them, with texts for UUIDs and times."""
    decoded: list[Row] = orjson.loads(orjson.dumps(rows, default=plain))
    return decoded


def name_objects_in_messages(rows: list[Row]) -> list[Row]:
    """Replace UUIDs in status messages by names of objects, as the console does, in at most five queries."""
    parameters = [row.get("input_parameters") or {} for row in rows]
    known = {str(one["resource_id"]): str(one["resource_name"]) for one in parameters if one.keys() >= NAMING}
    messages = [row.get("status_message") or "" for row in rows]
    names = find_plain_names(messages, known)
    for row, message in zip(rows, messages, strict=True):
        if message:
            row["status_message"] = name_objects_plainly(message, names)
    return rows


def pick(rows: Iterable[Row], fields: Sequence[str]) -> Iterator[Row]:
    for row in rows:
        yield {field: row[field] for field in fields}


def to_json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def table_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def csv_cell(value: Any) -> str:
    """Return a value as a cell that spreadsheets do not evaluate. Numbers are not formulas, even negative ones."""
    return table_cell(value) if isinstance(value, bool | int | float) else cell(table_cell(value))
