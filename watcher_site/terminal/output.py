"""Print objects as a table, as JSON or as CSV."""

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
from watcher_site.history.reading import cell, csv_line
from watcher_site.messages import without_controls

TABLE, JSON, CSV = FORMATS = ("table", "json", "csv")
SHORT_LENGTH = 8
# A table that goes to a file or to another program is not folded.
UNLIMITED_WIDTH = 100_000
STYLES = {"SUCCEEDED": "green", "FAILED": "bold red", "SKIPPED": "yellow", "CANCELLED": "magenta", "ERROR": "bold red"}


def render(table: Table, stream: Any, no_color: bool, force_color: bool) -> list[str]:
    """Return the lines of a table for a stream: with colours and folded only if the stream is a terminal."""
    is_terminal, text = stream.isatty(), StringIO()
    console = Console(
        file=text,
        width=None if is_terminal else UNLIMITED_WIDTH,
        no_color=no_color or None,
        force_terminal=is_terminal or force_color,
        highlight=False,
        markup=False,
        emoji=False,
    )
    console.print(table)
    return [line.rstrip() for line in text.getvalue().splitlines()]


class Printer:
    """Prints rows of the API in one of `FORMATS`.

    Args:
        stream: where to print.
        format: one of `FORMATS`.
        times: the fields that are shown without fractions of a second in tables.
        identifier: the field that is shown whole in tables. Other UUIDs are shortened.
    """

    def __init__(
        self, stream: Any, format: str, times: Collection[str], identifier: str, options: dict[str, Any]
    ) -> None:
        self.stream, self.format = stream, format
        self.times, self.identifier = times, identifier
        self.options = options

    def print_list(self, pages: Iterable[list[Row]], fields: Sequence[str], *, is_chosen: bool) -> None:
        """Print rows, with these fields of each; as JSON with all fields unless the fields were chosen."""
        # An invalid argument is found with the first page, before anything is printed.
        pages = iter(pages)
        first = next(pages, [])
        rows = chain.from_iterable(map(decode, chain([first], pages)))
        if self.format == JSON:
            self.print_json_list(pick(rows, fields) if is_chosen else rows)
        elif self.format == CSV:
            self.print_csv(rows, fields)
        else:
            self.print_table(rows, fields)

    def print_one(self, row: Row, fields: Sequence[str]) -> None:
        """Print these fields of one row, in a table with a line for each."""
        (decoded,) = pick(decode([row]), fields)
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
        cells = [[self.text_of(field, row[field]) for field in fields] for row in rows]
        table = make_table()
        for place, field in enumerate(fields):
            # The identifier is copied from the table: it is never divided.
            width = max((len(row[place]) for row in cells), default=0) if field == self.identifier else None
            table.add_column(heading(field, self.times), min_width=width, overflow="fold")
        for row in cells:
            table.add_row(*row)
        self.print(table)

    def text_of(self, field: str, value: Any, shortens: bool = True) -> Text:
        """Return a value as a cell of a table, without control characters, which a terminal would obey."""
        text = table_cell(value)
        if field in self.times:
            text = text[:19].replace("T", " ")
        elif shortens and field.endswith("_uuid") and field != self.identifier:
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
    """Return the heading of a column: ``created_at`` is CREATED AT (UTC), ``OS-EXT-SRV-ATTR:host`` is HOST."""
    return field.rpartition(":")[2].replace("_", " ").upper() + (" (UTC)" if field in times else "")


def decode(rows: list[Row]) -> list[Row]:
    """Return rows as clients of the API receive them: with texts for UUIDs and times."""
    decoded: list[Row] = orjson.loads(orjson.dumps(rows, default=plain))
    return decoded


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
    """Return a value as a cell that no spreadsheet computes. A number is no formula, also if it is negative."""
    return table_cell(value) if isinstance(value, bool | int | float) else cell(table_cell(value))
