"""The saved filters of a person above a list."""

from collections.abc import Collection
from typing import Any

from django.http import HttpRequest, QueryDict

from watcher_site.models import SavedFilter

# More filters of one list are hard to survey.
MOST_SAVED = 20
ORDER = "sort"


def filters_in(query: QueryDict, names: Collection[str]) -> str:
    """Return the filters and the order that the parameters of a list hold, as in an address, in one order."""
    kept = QueryDict(mutable=True)
    for name in sorted({*names, ORDER}):
        if values := [value for value in query.getlist(name) if value]:
            kept.setlist(name, values)
    return kept.urlencode()


def saved_filters(request: HttpRequest, names: Collection[str]) -> dict[str, Any]:
    """Return the saved filters of the person for the list of a request, and its current ones, for the template.

    The query is made when the template reads them: the rows alone do not show them.
    """
    match = request.resolver_match
    page = match.view_name if match else ""
    return {
        "saved_filters": SavedFilter.objects.of(request.user).filter(page=page).order_by("name", "pk"),
        "list_page": page,
        "current_filters": filters_in(request.GET, names),
    }
