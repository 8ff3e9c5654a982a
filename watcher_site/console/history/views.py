"""The console's pages of history."""

from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.views.generic import View

from watcher_site.console.history.filters import HistoryFilters
from watcher_site.console.history.tables import HistoryTable
from watcher_site.console.pages import ListPage, Page
from watcher_site.history.exporting import FORMATS, download
from watcher_site.history.searching import FILTERS
from watcher_site.models import HistoryEntry

PERMISSION = "watcher_site.view_historyentry"


class HistoryList(ListPage):
    """The page of history: who did what, the newest first."""

    model = HistoryEntry
    history_event = "history.view"
    permission_required = PERMISSION
    table_class = HistoryTable
    filterset_class = HistoryFilters
    template_name = "history/history_list.html"
    heading = "History"
    guidance = "Nobody has done anything yet that is worth telling."

    def get_queryset(self) -> QuerySet[HistoryEntry]:
        return HistoryEntry.objects.order_by("-pk")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        query = self.request.GET.copy()
        for name in ("page", "sort"):
            query.pop(name, None)
        return super().get_context_data(formats=FORMATS, query=query.urlencode(), **context)


class Export(Page, View):
    """The filtered list of history as a file."""

    permission_required = PERMISSION
    history_event = "history.view"
    http_method_names = ["get"]

    def get(self, request: HttpRequest, kind: str) -> HttpResponseBase:
        found = HistoryFilters(request.GET, HistoryEntry.objects.all())
        if not found.is_valid():
            problems = [f"{name}: {' '.join(words)}" for name, words in found.errors.items()]
            messages.error(request, f"Not exported. {' '.join(problems)}")
            return redirect("history:list")
        wishes = {name: value for name, value in request.GET.items() if value and name in FILTERS}
        return download(found.qs, kind, wishes)
