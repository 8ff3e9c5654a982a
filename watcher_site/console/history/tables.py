"""The table of history."""

from typing import Any
from uuid import UUID

import django_tables2 as tables
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from watcher_site.console.columns import TABLE_ATTRIBUTES, MessageColumn, TimeColumn
from watcher_site.history.descriptions import describe_event, details_in_words
from watcher_site.links import find_links, shortened
from watcher_site.models import HistoryEntry
from watcher_site.templatetags.console import head, short


class HistoryTable(tables.Table):
    created_at = TimeColumn(verbose_name="when")
    user = tables.Column(verbose_name="who", empty_values=())
    deed = tables.Column(verbose_name="event")
    object_name = tables.Column(verbose_name="object", empty_values=())
    outcome = tables.Column()
    message = MessageColumn(verbose_name="details", empty_values=())

    class Meta:
        model = HistoryEntry
        fields: tuple[str, ...] = ("created_at", "user", "deed", "object_name", "outcome", "message")
        attrs = TABLE_ATTRIBUTES

    def before_render(self, request: HttpRequest) -> None:
        """Find the pages of all objects that are shown at once: in a few queries, however many they are."""
        entries = [row.record for row in self.paginated_rows]
        self.links: dict[UUID, SafeString] = find_links({one.object_uuid for one in entries if one.object_uuid})

    def render_user(self, value: str) -> str:
        return value or "nobody"

    def render_deed(self, value: str) -> SafeString:
        return format_html('<span title="{}">{}</span>', value, head(describe_event(value)))

    def render_object_name(self, value: str, record: HistoryEntry) -> Any:
        return object_of(record, self.links)

    def render_message(self, value: str, record: HistoryEntry) -> SafeString:
        details = shortened(details_in_words(record.details))
        return format_html('<span class="first-lines">{} <span class="secondary">{}</span></span>', value, details)

    def render_outcome(self, record: HistoryEntry) -> SafeString:
        return format_html('<span class="outcome-{}">{}</span>', record.outcome, record.outcome)


def object_of(entry: HistoryEntry, links: dict[UUID, SafeString]) -> SafeString | str:
    """Return what an entry is about: a link where that still has a page, else its name, or its UUID's beginning."""
    if entry.object_uuid in links:
        return links[entry.object_uuid]
    if entry.object_name or entry.object_uuid is None:
        return entry.object_name or "—"
    return format_html('<span class="uuid" title="{}">{}</span>', entry.object_uuid, short(entry.object_uuid))
