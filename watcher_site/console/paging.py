"""The pages of tables: the sizes that a person may choose, and the number of rows that are counted."""

from django.http import HttpRequest
from django_tables2.data import TableQuerysetData

from watcher_site.database.counting import MOST_COUNTED

PAGE_SIZES = (25, 50, 100, 250, 500)
"""The largest leaves space for its check boxes below the number of fields that Django accepts in a form, 1000."""


def drop_unknown_page_size(request: HttpRequest) -> None:
    """Remove a page size that is not offered from the query of a request, so that neither 0 nor a million is used."""
    if request.GET.get("per_page", "") not in map(str, PAGE_SIZES):
        query = request.GET.copy()
        query.pop("per_page", None)
        request.GET = query  # type: ignore[assignment]


class LimitedRows(TableQuerysetData):
    """The rows of a table, counted and shown up to a limit: the further back a page is, the more it costs.

    Attributes:
        has_more: whether there are more rows than the limit, known once they are counted.
    """

    has_more = False
    _length: int | None = None

    def __len__(self) -> int:
        if self._length is None:
            number = self.data.order_by()[: MOST_COUNTED + 1].count()
            self._length, self.has_more = min(number, MOST_COUNTED), number > MOST_COUNTED
        return self._length
