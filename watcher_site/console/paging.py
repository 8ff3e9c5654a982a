"""Pagination of tables: the page sizes, the order of equal rows, and the limit of counted rows."""

from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet
from django.db.models.expressions import OrderBy
from django.http import HttpRequest
from django_tables2.data import TableQuerysetData

from watcher_site.database.counting import MOST_COUNTED

PAGE_SIZES = (25, 50, 100, 250, 500)
"""With the largest, the check boxes of all rows stay below the number of form fields that Django accepts, 1000."""


def drop_unknown_page_size(request: HttpRequest) -> None:
    """Remove a page size that is not offered, such as 0 or a million, from the query of a request."""
    if request.GET.get("per_page", "") not in map(str, PAGE_SIZES):
        query = request.GET.copy()
        query.pop("per_page", None)
        request.GET = query  # type: ignore[assignment]


class OrderedRows(TableQuerysetData):
    """The rows of a table, in one order on all its pages."""

    data: QuerySet[Any]

    def order_by(self, aliases: Iterable[str]) -> None:
        """Order the rows, those with equal values by their keys: else pages would repeat some rows and lack others."""
        super().order_by(aliases)
        columns = self.data.query.order_by
        if columns and columns[-1] not in {"pk", "-pk"}:
            self.data = self.data.order_by(*columns, "-pk" if is_descending(columns[-1]) else "pk")


def is_descending(column: Any) -> bool:
    return column.descending if isinstance(column, OrderBy) else str(column).startswith("-")


class LimitedRows(OrderedRows):
    """The rows of a table, counted and shown up to a limit, because later pages cost more.

    Attributes:
        has_more: whether there are more rows than the limit; set when they are counted.
    """

    has_more = False
    _length: int | None = None

    def __len__(self) -> int:
        if self._length is None:
            number = self.data.order_by()[: MOST_COUNTED + 1].count()
            self._length, self.has_more = min(number, MOST_COUNTED), number > MOST_COUNTED
        return self._length
