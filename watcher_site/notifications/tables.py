"""The console's tables of subscriptions and of what could not be delivered."""

from typing import Any

import django_filters
import django_tables2 as tables
from django.db.models import QuerySet
from django.http import HttpRequest

from watcher_site.columns import TABLE_ATTRIBUTES, MessageColumn, NumberColumn, TimeColumn
from watcher_site.models import Delivery, Subscription
from watcher_site.notifications.subscriptions import url_for

RESEND = "notifications/_resend.html"


class SubscriptionTable(tables.Table):
    name = tables.Column(linkify=("notifications:detail", {"uuid": tables.A("uuid")}))
    url = tables.Column(verbose_name="URL", orderable=False, attrs={"td": {"class": "text-break"}})
    event_types = tables.Column(verbose_name="events", orderable=False)
    enabled = tables.Column()
    waiting_count = NumberColumn(verbose_name="waiting", orderable=False)
    undelivered_count = NumberColumn(verbose_name="undelivered", orderable=False)
    problem = MessageColumn()
    created_at = TimeColumn(accessor="created_at", verbose_name="made")

    class Meta:
        model = Subscription
        counts = ("waiting_count", "undelivered_count")
        fields = ("name", "url", "event_types", "enabled", *counts, "problem", "created_at")
        attrs = TABLE_ATTRIBUTES

    def before_render(self, request: HttpRequest) -> None:
        self.reader = request.user

    def render_url(self, value: str) -> str:
        return url_for(self.reader, value)

    def render_event_types(self, value: list[str]) -> str:
        return ", ".join(value)

    def render_enabled(self, value: bool) -> str:
        return "enabled" if value else "disabled"


class UndeliveredTable(tables.Table):
    event_type = tables.Column(accessor="notification__event_type", verbose_name="event", orderable=False)
    object_uuid = tables.Column(
        accessor="notification__object_uuid", verbose_name="of", orderable=False, attrs={"td": {"class": "uuid"}}
    )
    receiver = tables.Column(
        accessor="subscription__name", verbose_name="receiver", orderable=False, default="the message broker"
    )
    state = tables.Column(orderable=False)
    attempts = NumberColumn()
    problem = MessageColumn()
    created_at = TimeColumn(accessor="created_at", verbose_name="made")
    again = tables.TemplateColumn(template_name=RESEND, verbose_name="", orderable=False)

    class Meta:
        model = Delivery
        fields = ("event_type", "object_uuid", "receiver", "state", "attempts", "problem", "created_at", "again")
        attrs = TABLE_ATTRIBUTES

    def render_state(self, record: Delivery) -> str:
        if record.state == Delivery.State.UNDELIVERED:
            return "given up"
        return "waits until it is enabled" if record.subscription else "waits until a broker is set"


class SubscriptionFilters(django_filters.FilterSet):
    name = django_filters.CharFilter(label="Name", lookup_expr="icontains")

    class Meta:
        model = Subscription
        fields: list[str] = []


class UndeliveredFilters(django_filters.FilterSet):
    receiver = django_filters.CharFilter(label="Receiver", field_name="subscription__name", lookup_expr="icontains")
    event = django_filters.CharFilter(label="Event", method="filter_event")

    class Meta:
        model = Delivery
        fields: list[str] = []

    def filter_event(self, queryset: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        return queryset.filter(notification__event_type__icontains=value)
