"""Template tags for tables of django-tables2: the rows, the range of the shown rows, and the choices of sort orders.

Rows are written in Python, because templates for each cell take most of the time of a list.
"""

import re
from collections.abc import Callable, Iterator
from itertools import compress
from typing import Any

from django import template
from django.utils.formats import localize, number_format
from django.utils.html import conditional_escape, format_html, strip_tags
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django_tables2.columns.base import BoundColumn
from django_tables2.rows import BoundRow
from django_tables2.utils import signature

from watcher_site.templatetags.console import head
from watcher_site.templatetags.names import ELEMENT

# The places after underscores, at signs and full stops in names. Numbers may contain full stops.
BREAKS = re.compile(r"(?<=[_@])(?=\w)|(?<=\w\.)(?=[^\W\d])")

register = template.Library()


class CellWriter:
    """Writes the cells of one column, with the parts that do not depend on the record computed once per column.

    Each cell contains the head of its column, because on a narrow screen the cells of a row are below each other. A
    value is written as it is stored, not by the label of its choice. The attributes of a column cannot depend on the
    record.
    """

    def __init__(self, column: BoundColumn) -> None:
        self.column = column
        attributes, label = column.attrs["td"].as_html(), head(strip_tags(str(column.verbose_name)))
        self.opening = format_html('<td {} data-label="{}">', attributes, label)
        self.link: Callable[..., Any] | None = column.link
        names, catch_all = signature(column.render)
        self.names = None if catch_all else names
        self.is_empty = True
        """Whether all cells that have been written are empty."""

    def write(self, row: BoundRow, table: Any) -> str:
        cell = self.compose(row, table)
        if cell == "":
            return f"{self.opening}</td>"
        self.is_empty = False
        return f"{self.opening}<div>{breakable(conditional_escape(localize(cell)))}</div></td>"

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


@register.filter(is_safe=True)
def breakable(html: str) -> str:
    """Return HTML with opportunities for line breaks within names, where browsers do not break words themselves."""
    if not BREAKS.search(html):
        return html
    parts = ELEMENT.split(html)
    parts[::2] = [BREAKS.sub("<wbr>", text) for text in parts[::2]]
    return "".join(parts)


@register.simple_tag
def table_rows(table: Any) -> SafeString:
    """Write the rows of the table's page, and hide the columns that have no cells with content.

    Columns by which the table can be sorted are shown in any case. The tag precedes the heads of the columns.
    """
    writers = [CellWriter(column) for column in table.columns]
    rows = [(row, [writer.write(row, table) for writer in writers]) for row in table.paginated_rows]
    shown = [not writer.is_empty or writer.column.orderable for writer in writers]
    for writer, is_shown in zip(writers, shown, strict=True):
        if not is_shown:
            table.columns.hide(writer.column.name)
    lines = [f"<tr {row.attrs.as_html()}>{''.join(compress(cells, shown))}</tr>" for row, cells in rows]
    return mark_safe("\n".join(lines))  # noqa: S308 (each part was escaped)


@register.simple_tag
def row_range(table: Any) -> str:
    """Return the numbers of the shown rows and of all rows, such as 51 to 100 of 2,066.

    The paginator of the table has counted the rows. For a table that counts up to a limit, the text states that there
    are more.
    """
    first, last, total = (
        number_format(number) for number in (table.page.start_index(), table.page.end_index(), table.paginator.count)
    )
    numbers = {"first": first, "last": last, "total": total}
    if getattr(table.data, "has_more", False):
        return _("%(first)s–%(last)s of more than %(total)s") % numbers  # noqa: RUF001 (a dash between numbers)
    return _("%(first)s–%(last)s of %(total)s") % numbers  # noqa: RUF001 (a dash between numbers)


@register.inclusion_tag("_sorting.html", takes_context=True)
def sorting(context: Any, table: Any, anchor: str = "") -> dict[str, Any]:
    """Show a form that sorts a table, for narrow screens, on which the heads of the columns are hidden.

    Args:
        anchor: the id of the element to return to, if it is not the top of the page.
    """
    request, field = context["request"], table.prefixed_order_by_field
    dropped = {field, table.prefixed_page_field}
    return {
        "field": field,
        "anchor": anchor,
        "orders": list(list_orders(table)),
        "kept": [(name, value) for name, values in request.GET.lists() if name not in dropped for value in values],
    }


def list_orders(table: Any) -> Iterator[tuple[str, str, bool]]:
    """Yield the sort orders of a table: the value of the parameter, the label, and whether it is the current order."""
    current = [str(order) for order in table.order_by or ()]
    for column in table.columns:
        if not column.orderable:
            continue
        label = head(strip_tags(str(column.verbose_name)))
        orders = ((column.name, _("%(column)s, ascending")), (f"-{column.name}", _("%(column)s, descending")))
        for value, label_format in orders:
            yield value, label_format % {"column": label}, value in current
