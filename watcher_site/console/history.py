"""The console's history pages."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import django_filters
import django_tables2 as tables
from django import forms
from django.contrib import messages
from django.core.validators import ProhibitNullCharactersValidator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _
from django.views.generic import View

from watcher_site.console.columns import TABLE_ATTRIBUTES, MessageColumn, TimeColumn, with_zone
from watcher_site.console.lists.entries import match_kinds, match_objects, match_requests
from watcher_site.console.lists.filters import ObjectFilter
from watcher_site.console.pages import ListPage, Page
from watcher_site.history.event_labels import OUTCOMES, describe_event, describe_outcome
from watcher_site.history.reading import FILTERS, FORMATS, details_in_words, download, narrow
from watcher_site.messages import STATUS_MESSAGE_LENGTH, UUIDS, cut, translate_message
from watcher_site.models import HistoryEntry
from watcher_site.models.history import HistoryQuerySet
from watcher_site.templatetags.console import find_links, head, linked, short
from watcher_site.templatetags.names import mark_plainly


class HistoryTable(tables.Table):
    created_at = TimeColumn(verbose_name=_("time"))
    user = tables.Column(verbose_name=_("user"), empty_values=())
    deed = tables.Column(verbose_name=_("event"))
    object_name = tables.Column(verbose_name=_("object"), empty_values=())
    outcome = tables.Column()
    message = MessageColumn(verbose_name=_("details"), empty_values=())

    class Meta:
        model = HistoryEntry
        fields: tuple[str, ...] = ("created_at", "user", "deed", "object_name", "outcome", "message")
        attrs = TABLE_ATTRIBUTES

    def before_render(self, request: HttpRequest) -> None:
        """Find the pages of all objects in the shown rows, in a few queries."""
        entries = [row.record for row in self.paginated_rows]
        texts = [text for one in entries for text in (one.message, describe_details(one))]
        mentioned = {UUID(identifier) for text in texts for identifier in UUIDS.findall(text)}
        self.links: dict[UUID, SafeString] = find_links(
            mentioned | {one.object_uuid for one in entries if one.object_uuid}
        )

    def render_user(self, value: str) -> str:
        return value or "—"

    def render_deed(self, value: str) -> SafeString:
        return format_html('<span title="{}">{}</span>', value, head(describe_event(value)))

    def render_object_name(self, value: str, record: HistoryEntry) -> Any:
        return render_object(record, self.links)

    def render_message(self, value: str, record: HistoryEntry) -> SafeString:
        if not (value or record.details or record.request_id):
            return mark_safe("")
        message, details = (self.with_links(text) for text in (translate_message(value), describe_details(record)))
        text = format_html('<span class="first-lines">{} <span class="secondary">{}</span></span>', message, details)
        return format_html("<div>{}{}</div>", text, link_to_request(record.request_id)) if record.request_id else text

    def with_links(self, text: str) -> SafeString:
        """Return a text with links for the UUIDs of known objects, and shortened other UUIDs."""
        mentioned = {UUID(identifier) for identifier in UUIDS.findall(text)}
        return linked(text, {uuid: self.links.get(uuid, short(uuid)) for uuid in mentioned})

    def render_outcome(self, record: HistoryEntry) -> SafeString:
        return format_html('<span class="outcome-{}">{}</span>', record.outcome, describe_outcome(record.outcome))


def describe_details(entry: HistoryEntry) -> str:
    """Return the details of an entry in one line.

    Control characters are marked before the text is cut, which would remove them.
    """
    text = details_in_words(entry.details)
    return text if len(text) <= STATUS_MESSAGE_LENGTH else cut(mark_plainly(text))


def link_to_request(request_id: str) -> SafeString:
    """Return the beginning of a request's ID, with a link to the entries of that request."""
    url = f"{reverse('history:list')}?{urlencode({'request_id': request_id})}"
    beginning = f"{request_id[:12]}…" if len(request_id) > 12 else request_id
    return format_html('<a class="uuid" href="{}" title="{}">{}</a>', url, request_id, beginning)


def render_object(entry: HistoryEntry, links: dict[UUID, SafeString]) -> SafeString | str:
    """Return the object of an entry: a link if it has a page, else its name or the beginning of its UUID."""
    if entry.object_uuid in links:
        return links[entry.object_uuid]
    if entry.object_name or entry.object_uuid is None:
        return entry.object_name or "—"
    return format_html('<span class="uuid" title="{}">{}</span>', entry.object_uuid, short(entry.object_uuid))


MOMENT = {"type": "datetime-local", "step": "1"}
TIME_FORMATS = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d"]


class TextFilter(django_filters.CharFilter):
    def __init__(self, **options: Any) -> None:
        limits = {"max_length": 255, "validators": [ProhibitNullCharactersValidator()]}
        super().__init__(**{"method": "apply_filter", **limits, **options})


class MomentFilter(django_filters.DateTimeFilter):
    def __init__(self, **options: Any) -> None:
        widget = forms.DateTimeInput(MOMENT, format="%Y-%m-%dT%H:%M:%S")
        super().__init__(method="apply_filter", input_formats=TIME_FORMATS, widget=widget, **options)


class HistoryFilters(django_filters.FilterSet):
    user = TextFilter(label=_("User"))
    deed = ObjectFilter(
        match_kinds,
        label=_("Event or object type"),
        method="filter_by",
        unknown=_("No entry has the event or the object type %(text)s."),
    )
    object = ObjectFilter(match_objects, label=_("Object"), method="filter_by")
    request_id = ObjectFilter(
        match_requests,
        label=_("Request ID"),
        method="filter_by",
        unknown=_("No entry has the request ID %(text)s, or one that begins so."),
    )
    outcome = django_filters.ChoiceFilter(label=_("Outcome"), choices=list(OUTCOMES.items()), empty_label=_("any"))
    since = MomentFilter(label=with_zone(_("Since")))
    before = MomentFilter(label=with_zone(_("Before")))
    text = TextFilter(label=_("Text"))

    class Meta:
        model = HistoryEntry
        fields: list[str] = []

    def apply_filter(self, entries: HistoryQuerySet, name: str, value: Any) -> HistoryQuerySet:
        return narrow(entries, {name: value})

    def filter_by(self, entries: HistoryQuerySet, _: str, found: tuple[str, str]) -> HistoryQuerySet:
        name, value = found
        return narrow(entries, {name: value})


PERMISSION = "watcher_site.view_historyentry"


class HistoryList(ListPage):
    """The page of history, the newest entries first."""

    model = HistoryEntry
    history_event = "history.view"
    permission_required = PERMISSION
    table_class = HistoryTable
    filterset_class = HistoryFilters
    template_name = "history/history_list.html"
    heading = _("History")
    help_page = "concepts#history"
    guidance = _("No entries yet.")

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
            problems = [f"{name}: {' '.join(errors)}" for name, errors in found.errors.items()]
            messages.error(request, _("Cannot export. %(problems)s") % {"problems": " ".join(problems)})
            return redirect("history:list")
        filters = {name: value for name, value in request.GET.items() if value and name in FILTERS}
        return download(found.qs, kind, filters)
