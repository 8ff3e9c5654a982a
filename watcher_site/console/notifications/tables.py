"""The console's tables of subscriptions and of what could not be delivered."""

from typing import Any
from uuid import UUID

import django_filters
import django_tables2 as tables
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from watcher_site.console.columns import (
    TABLE_ATTRIBUTES,
    LineColumn,
    MessageColumn,
    NumberColumn,
    TimeColumn,
    in_one_line,
)
from watcher_site.links import find_links
from watcher_site.models import Delivery, Subscription
from watcher_site.notifications.subscriptions import url_for
from watcher_site.templatetags.console import short

# These fit the narrower screens, too.
ATTRIBUTES = {"class": f"{TABLE_ATTRIBUTES['class']} told"}
MADE = {name: {"class": "text-nowrap wide-only"} for name in ("th", "td")}
WAITING = {name: {"class": "text-end number wider-only"} for name in ("th", "td")}
BROKER_IN_WORDS = "the message broker"
RESEND = "notifications/_resend.html"


class SubscriptionTable(tables.Table):
    name = LineColumn(linkify=("notifications:detail", {"uuid": tables.A("uuid")}))
    url = LineColumn(verbose_name="URL", orderable=False)
    event_types = LineColumn(verbose_name="events", orderable=False)
    enabled = tables.Column()
    waiting_count = NumberColumn(verbose_name="waiting", orderable=False, attrs=WAITING)
    undelivered_count = NumberColumn(verbose_name="undelivered", orderable=False)
    problem = MessageColumn()
    created_at = TimeColumn(accessor="created_at", verbose_name="made", attrs=MADE)

    class Meta:
        model = Subscription
        counts = ("waiting_count", "undelivered_count")
        fields = ("name", "url", "event_types", "enabled", *counts, "problem", "created_at")
        attrs = ATTRIBUTES

    def before_render(self, request: HttpRequest) -> None:
        self.reader = request.user

    def render_url(self, value: str) -> str:
        return in_one_line(url_for(self.reader, value))

    def render_event_types(self, value: list[str]) -> str:
        return in_one_line(", ".join(value))

    def render_enabled(self, value: bool) -> str:
        return "enabled" if value else "disabled"


class UndeliveredTable(tables.Table):
    event_type = tables.Column(
        accessor="notification__event_type", verbose_name="event", orderable=False, attrs={"td": {"class": "event"}}
    )
    object_uuid = LineColumn(accessor="notification__object_uuid", verbose_name="of", orderable=False)
    receiver = LineColumn(
        accessor="subscription__name", verbose_name="receiver", orderable=False, default=BROKER_IN_WORDS
    )
    state = tables.Column(orderable=False)
    attempts = NumberColumn()
    problem = MessageColumn()
    created_at = TimeColumn(accessor="created_at", verbose_name="made", attrs=MADE)
    again = tables.TemplateColumn(
        template_name=RESEND, verbose_name="", orderable=False, attrs={"td": {"class": "last-verbs"}}
    )

    class Meta:
        model = Delivery
        fields = ("event_type", "object_uuid", "receiver", "state", "attempts", "problem", "created_at", "again")
        attrs = ATTRIBUTES

    def render_state(self, record: Delivery) -> str:
        if record.state == Delivery.State.UNDELIVERED:
            return "given up"
        return "waits until it is enabled" if record.subscription else "waits until a broker is set"

    def before_render(self, request: HttpRequest) -> None:
        self.links = find_links({row.record.notification.object_uuid for row in self.paginated_rows})

    def render_object_uuid(self, value: UUID) -> SafeString:
        known = self.links.get(value)
        if known:
            return format_html('<span class="one-line">{}</span>', known)
        return format_html('<span class="uuid" title="{}">{}</span>', value, short(value))


class SubscriptionFilters(django_filters.FilterSet):
    name = django_filters.CharFilter(label="Name", lookup_expr="icontains")

    class Meta:
        model = Subscription
        fields: list[str] = []


class UndeliveredFilters(django_filters.FilterSet):
    receiver = django_filters.CharFilter(label="Receiver", method="filter_receiver")
    event = django_filters.CharFilter(label="Event", method="filter_event")

    class Meta:
        model = Delivery
        fields: list[str] = []

    def filter_receiver(self, queryset: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        found = Q(subscription__name__icontains=value)
        return queryset.filter(found | Q(subscription=None) if value.lower() in BROKER_IN_WORDS else found)

    def filter_event(self, queryset: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        return queryset.filter(notification__event_type__icontains=value)
