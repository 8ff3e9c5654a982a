"""The page sizes of tables that a person may choose."""

from django.http import HttpRequest

PAGE_SIZES = (25, 50, 100, 250, 500)
"""The largest leaves space for its check boxes below the number of fields that Django accepts in a form, 1000."""


def drop_unknown_page_size(request: HttpRequest) -> None:
    """Remove a page size that is not offered from the query of a request, so that neither 0 nor a million is used."""
    if request.GET.get("per_page", "") not in map(str, PAGE_SIZES):
        query = request.GET.copy()
        query.pop("per_page", None)
        request.GET = query  # type: ignore[assignment]
