"""The console's pages of undelivered notifications."""

from typing import Any
from uuid import UUID

import django_filters
import django_tables2 as tables
from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views import View

from watcher_site.console.columns import (
    LineColumn,
    NumberColumn,
    StoredMessageColumn,
    TimeColumn,
)
from watcher_site.console.pages import ListPage, OperationView, Page
from watcher_site.console.subscriptions import ATTRIBUTES, MADE
from watcher_site.models import Delivery
from watcher_site.notifications import deliveries
from watcher_site.templatetags.console import find_links, short

RESEND, DELETE = "watcher_site.resend_delivery", "watcher_site.delete_delivery"
BROKER_LABEL = _("the message broker")


class UndeliveredTable(tables.Table):
    event_type = tables.Column(
        accessor="notification__event_type", verbose_name=_("event"), orderable=False, attrs={"td": {"class": "event"}}
    )
    object_uuid = LineColumn(accessor="notification__object_uuid", verbose_name=_("object"), orderable=False)
    receiver = LineColumn(
        accessor="subscription__name", verbose_name=_("receiver"), orderable=False, default=BROKER_LABEL
    )
    state = tables.Column(orderable=False)
    attempts = NumberColumn()
    problem = StoredMessageColumn()
    created_at = TimeColumn(accessor="created_at", verbose_name=_("created"), attrs=MADE)
    again = tables.TemplateColumn(
        template_name="notifications/_resend.html",
        verbose_name=_("operations"),
        orderable=False,
        attrs={"td": {"class": "last-verbs"}},
    )

    class Meta:
        model = Delivery
        fields = ("event_type", "object_uuid", "receiver", "state", "attempts", "problem", "created_at", "again")
        attrs = ATTRIBUTES

    def render_state(self, record: Delivery) -> str:
        if record.state == Delivery.State.UNDELIVERED:
            return gettext("undelivered")
        disabled, absent = gettext("pending: subscription disabled"), gettext("pending: no message broker")
        return disabled if record.subscription else absent

    def before_render(self, request: HttpRequest) -> None:
        self.links = find_links({row.record.notification.object_uuid for row in self.paginated_rows})

    def render_object_uuid(self, value: UUID) -> SafeString:
        known = self.links.get(value)
        if known:
            return format_html('<span class="one-line">{}</span>', known)
        return format_html('<span class="uuid" title="{}">{}</span>', value, short(value))


class UndeliveredFilters(django_filters.FilterSet):
    receiver = django_filters.CharFilter(label=_("Receiver"), method="filter_receiver")
    event = django_filters.CharFilter(label=_("Event"), method="filter_event")

    class Meta:
        model = Delivery
        fields: list[str] = []

    def filter_receiver(self, queryset: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        found = Q(subscription__name__icontains=value)
        return queryset.filter(found | Q(subscription=None) if value.lower() in str(BROKER_LABEL).lower() else found)

    def filter_event(self, queryset: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        return queryset.filter(notification__event_type__icontains=value)


class UndeliveredList(ListPage):
    model = Delivery
    history_event = "undelivered.view"
    permission_required = "watcher_site.view_delivery"
    table_class = UndeliveredTable
    filterset_class = UndeliveredFilters
    template_name = "notifications/undelivered_list.html"
    heading = _("Undelivered")
    help_page = "concepts#subscription"
    guidance = _("No undelivered notifications.")

    def get_table_kwargs(self) -> dict[str, Any]:
        return {} if self.may(RESEND) or self.may(DELETE) else {"exclude": ("again",)}

    def get_queryset(self) -> QuerySet[Delivery]:
        found: QuerySet[Delivery] = Delivery.objects.stuck()
        return found.select_related("notification", "subscription").order_by("-created_at", "-pk")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        shown = super().get_context_data(**context)
        number = self.object_list.undelivered().count()
        return {**shown, "given_up": str(number) if number else "", "filters": list_query(self.request)}


class DeadLetterOperationView(OperationView):
    """A button beside a dead letter, which redirects to the list with the same filters."""

    model = Delivery

    def get_queryset(self) -> Any:
        return Delivery.objects.undelivered().select_related("notification", "subscription")

    def redirect_url(self, record: Delivery, done: bool) -> str:
        return filtered_list_address(self.request)


class Resend(DeadLetterOperationView):
    history_event = "undelivered.resend"
    permission_required = RESEND
    verb = _("send the notification again")

    def perform(self, delivery: Delivery) -> str:
        deliveries.resend(delivery)
        return _("%(event)s will be sent again.") % {"event": delivery.notification.event_type}


class DeleteUndelivered(DeadLetterOperationView):
    history_event = "undelivered.delete"
    permission_required = DELETE
    verb = _("delete the notification")
    question = _("Delete this notification?")
    consequence = _("The receiver will not get this notification.")

    def name_of(self, delivery: Delivery) -> str:
        return delivery.notification.event_type

    def perform(self, delivery: Delivery) -> str:
        deliveries.delete_dead_letter(delivery)
        return _("Deleted notification %(event)s.") % {"event": delivery.notification.event_type}


class ResendAll(Page, View):
    """The button that resends all dead letters that match the filters of the list."""

    history_event, policy = "undelivered.resend", "undelivered:resend_all"
    permission_required = RESEND
    http_method_names = ["get", "post"]
    verb = _("send the notifications again")
    look = "primary"

    def get(self, request: HttpRequest) -> HttpResponse:
        number = self.selected_deliveries().count()
        if not number:
            messages.info(request, _("No notifications to send again."))
            return redirect(filtered_list_address(request))
        question = ngettext("Send %(number)s notification again?", "Send %(number)s notifications again?", number)
        self.question = question % {"number": number_format(number)}
        advice = _("Delivery starts again from the first attempt.")
        self.consequence = f"{self.describe_filters()} {advice}"
        return render(request, "confirm.html", {"view": self, "back": filtered_list_address(request)})

    def post(self, request: HttpRequest) -> HttpResponse:
        number = deliveries.resend_all(self.selected_deliveries(), self.filters())
        sent = ngettext(
            "%(number)s notification will be sent again.", "%(number)s notifications will be sent again.", number
        )
        messages.success(
            request, sent % {"number": number_format(number)} if number else _("No notifications to send again.")
        )
        return redirect(filtered_list_address(request))

    def filters(self) -> dict[str, str]:
        given = {name: self.request.GET.get(name, "").strip() for name in UndeliveredFilters.base_filters}
        return {name: value for name, value in given.items() if value}

    def selected_deliveries(self) -> QuerySet[Delivery]:
        filters = UndeliveredFilters(self.request.GET, queryset=Delivery.objects.undelivered())
        found: QuerySet[Delivery] = filters.qs if filters.is_valid() else Delivery.objects.none()
        return found

    def describe_filters(self) -> str:
        filters = self.filters()
        if not filters:
            return gettext("All undelivered notifications.")
        containing = {"receiver": _("receiver containing “%(text)s”"), "event": _("event containing “%(text)s”")}
        conditions = [containing[name] % {"text": value} for name, value in filters.items()]
        return _("Only notifications with %(conditions)s.") % {"conditions": _(" and ").join(conditions)}


def filtered_list_address(request: HttpRequest) -> str:
    """Return the URL of the list with the filters, sort order and page of the request."""
    return f"{reverse('notifications:undelivered')}{list_query(request)}"


def list_query(request: HttpRequest) -> str:
    """Return the query string with the filters, sort order and page of the list."""
    known = (*UndeliveredFilters.base_filters, "sort", "page")
    values = {name: request.GET[name] for name in known if name in request.GET}
    return f"?{urlencode(values)}" if values else ""
