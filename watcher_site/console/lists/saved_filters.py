"""A user's saved filters, shown above a list."""

from collections.abc import Collection
from typing import Any

from django.http import HttpRequest, QueryDict

from watcher_site.models import SavedFilter

# Limit for one list.
MOST_SAVED = 20
ORDER = "sort"


def filters_in(query: QueryDict, names: Collection[str]) -> str:
    """Return the filters and the sort order in the parameters of a list as a query string in a fixed order."""
    kept = QueryDict(mutable=True)
    for name in sorted({*names, ORDER}):
        if values := [value for value in query.getlist(name) if value]:
            kept.setlist(name, values)
    return kept.urlencode()


def saved_filters(request: HttpRequest, names: Collection[str]) -> dict[str, Any]:
    """Return the user's saved filters for the list of a request, and its current filters, for the template.

    The query is only made if the template uses them: htmx requests only the rows.
    """
    match = request.resolver_match
    page = match.view_name if match else ""
    return {
        "saved_filters": SavedFilter.objects.of(request.user).filter(page=page).order_by("name", "pk"),
        "list_page": page,
        "current_filters": filters_in(request.GET, names),
    }
