"""The rows of a table of django-tables2, written in Python.

A template for each cell takes most of the time of a list.
"""

from collections.abc import Callable
from typing import Any

from django import template
from django.utils.formats import localize
from django.utils.html import conditional_escape, format_html, strip_tags
from django.utils.safestring import SafeString, mark_safe
from django_tables2.columns.base import BoundColumn
from django_tables2.rows import BoundRow
from django_tables2.utils import signature

from watcher_site.templatetags.console import head

register = template.Library()


class CellWriter:
    """Writes the cells of one column: what does not depend on the record is found once for the column.

    Each cell has the head of its column, as the cells of a row are below each other on a narrow screen. A value is
    written as it is stored, not by the label of its choice. The attributes of a column cannot depend on the record.
    """

    def __init__(self, column: BoundColumn) -> None:
        self.column = column
        attributes, label = column.attrs["td"].as_html(), head(strip_tags(str(column.verbose_name)))
        self.opening = format_html('<td {} data-label="{}">', attributes, label)
        self.link: Callable[..., Any] | None = column.link
        names, catch_all = signature(column.render)
        self.names = None if catch_all else names

    def write(self, row: BoundRow, table: Any) -> str:
        cell = self.compose(row, table)
        content = "" if cell == "" else f"<div>{conditional_escape(localize(cell))}</div>"
        return f"{self.opening}{content}</td>"

    def compose(self, row: BoundRow, table: Any) -> Any:
        """Return the content of a cell, as `BoundRow.get_cell` does."""
        column, record = self.column, row.record
        value = column.accessor.resolve(record, quiet=True)
        if value in column.column.empty_values:
            return column.default
        known = {
            "value": value,
            "record": record,
            "column": column.column,
            "bound_column": column,
            "bound_row": row,
            "table": table,
        }
        arguments = known if self.names is None else {name: known[name] for name in self.names}
        content = column.render(**arguments)
        return self.link(content, **known) if self.link else content


@register.simple_tag
def table_rows(table: Any) -> SafeString:
    """Write the rows of the table's page."""
    writers = [CellWriter(column) for column in table.columns]
    rows = [
        f"<tr {row.attrs.as_html()}>{''.join(writer.write(row, table) for writer in writers)}</tr>"
        for row in table.paginated_rows
    ]
    return mark_safe("\n".join(rows))  # noqa: S308 (each part was escaped)
