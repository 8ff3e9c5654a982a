"""The console's subscription pages."""

from collections.abc import Mapping
from typing import Any

import django_filters
import django_tables2 as tables
from django import forms
from django.conf import settings
from django.contrib import messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views import View

from watcher_site.console.account import show_secret_once
from watcher_site.console.columns import (
    TABLE_ATTRIBUTES,
    LineColumn,
    NumberColumn,
    StoredMessageColumn,
    TimeColumn,
    render_in_one_line,
)
from watcher_site.console.lists.filters import NameFilter
from watcher_site.console.pages import FollowedPage, ListPage, OperationView, perform_with_message
from watcher_site.console.resumable_forms import ResumableFormPage
from watcher_site.messages import Text, translate_message
from watcher_site.models import Delivery, Subscription
from watcher_site.models.notifications import NAME_LENGTH, URL_LENGTH
from watcher_site.notifications.broker_state import broker_state
from watcher_site.notifications.subscriptions import (
    CHANGE,
    CHECKS,
    OWN_FIELDS,
    Kind,
    change_subscription,
    changeable_values,
    checked_slack_url,
    describe_target,
    renew_secret,
    send_test,
    subscribe,
    unsubscribe,
)
from watcher_site.refusals import Refused

# These also fit narrow screens.
ATTRIBUTES = {"class": f"{TABLE_ATTRIBUTES['class']} told"}
MADE = {name: {"class": "text-nowrap wide-only"} for name in ("th", "td")}
WAITING = {name: {"class": "text-end number wider-only"} for name in ("th", "td")}


SLACK_HELP = _("The URL of an incoming webhook of Slack, or of a compatible chat such as Mattermost. It is secret.")
SLACK_HELP_OF_CURRENT = _("Enter the whole URL of another incoming webhook to replace the current one.")


class SubscriptionTable(tables.Table):
    name = LineColumn(linkify=("notifications:detail", {"uuid": tables.A("uuid")}))
    kind = tables.Column(orderable=False, attrs=MADE)
    receiver = LineColumn(verbose_name=_("receiver"), orderable=False, accessor="url", empty_values=())
    event_types = LineColumn(verbose_name=_("events"), orderable=False)
    enabled = tables.Column()
    waiting_count = NumberColumn(verbose_name=_("pending"), orderable=False, attrs=WAITING)
    undelivered_count = NumberColumn(verbose_name=_("undelivered"), orderable=False)
    problem = StoredMessageColumn()
    created_at = TimeColumn(accessor="created_at", verbose_name=_("created"), attrs=MADE)

    class Meta:
        model = Subscription
        counts = ("waiting_count", "undelivered_count")
        fields = ("name", "kind", "receiver", "event_types", "enabled", *counts, "problem", "created_at")
        attrs = ATTRIBUTES

    def before_render(self, request: HttpRequest) -> None:
        self.reader = request.user

    def render_receiver(self, record: Subscription) -> str:
        return render_in_one_line(describe_target(self.reader, record))

    def render_event_types(self, value: list[str]) -> str:
        return render_in_one_line(", ".join(value))

    def render_enabled(self, value: bool) -> str:
        return gettext("enabled") if value else gettext("disabled")


class SubscriptionFilters(django_filters.FilterSet):
    name = NameFilter()

    class Meta:
        model = Subscription
        fields: list[str] = []


class SubscriptionList(ListPage):
    model = Subscription
    permission_required = "watcher_site.view_subscription"
    table_class = SubscriptionTable
    filterset_class = SubscriptionFilters
    template_name = "notifications/subscription_list.html"
    heading = _("Notifications")
    help_page = "concepts#subscription"
    guidance = _(
        "No subscriptions yet. A subscription sends notifications of audits, plans and actions to a URL, by e-mail or"
        " to a chat."
    )

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        may_know = self.may("watcher_site.view_delivery")
        return super().get_context_data(broker=broker_state() if may_know else None, **context)

    def get_queryset(self) -> QuerySet[Subscription]:
        waiting, undelivered = (
            Count("deliveries", filter=Q(deliveries__state=state))
            for state in (Delivery.State.PENDING, Delivery.State.UNDELIVERED)
        )
        found = Subscription.objects.present().annotate(waiting_count=waiting, undelivered_count=undelivered)
        return found.order_by("name", "pk")


class SubscriptionPage(FollowedPage):
    """The page of a subscription: its event types, and the state of its deliveries.

    It follows deliveries until their first result: after a failure, the next attempt may be hours later.
    """

    model = Subscription
    permission_required = "watcher_site.view_subscription"
    template_name = "notifications/subscription_detail.html"
    part_template = "notifications/_subscription.html"

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        counts = dict(self.object.deliveries.order_by().values_list("state").annotate(Count("pk")))
        pending = counts.get(Delivery.State.PENDING, 0)
        return super().get_context_data(
            target=describe_target(self.request.user, self.object),
            pending=pending,
            is_sending=bool(pending and self.object.enabled and self.object.due_time is None),
            undelivered=counts.get(Delivery.State.UNDELIVERED, 0),
            **context,
        )


class SubscriptionForm(forms.Form):
    """The form of a subscription, which shows all errors at once."""

    name = forms.CharField(label=_("Name"), max_length=NAME_LENGTH)
    url = forms.CharField(
        label=_("URL"), max_length=URL_LENGTH, help_text=_("Notifications are sent to this URL by POST.")
    )
    addresses = forms.CharField(
        label=_("Addresses"), widget=forms.Textarea(attrs={"rows": 2}), help_text=_("Separated by spaces or commas.")
    )
    event_types = forms.CharField(
        label=_("Events"), initial="*", help_text=_("Separated by spaces; * matches any characters: action.* *.error")
    )
    enabled = forms.BooleanField(label=_("Enabled"), required=False, initial=True)

    def __init__(self, *arguments: Any, kind: str, current: Subscription | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.kind, self.current = kind, current
        for name in {"url", "addresses"} - {*OWN_FIELDS[Kind(kind)]}:
            del self.fields[name]
        if kind == Kind.SLACK:
            self.fields["url"].help_text = SLACK_HELP_OF_CURRENT if current else SLACK_HELP

    def clean_name(self) -> Any:
        return self.clean_value("name", self.cleaned_data["name"])

    def clean_url(self) -> Any:
        return self.clean_value("url", self.cleaned_data["url"])

    def clean_addresses(self) -> Any:
        return self.clean_value("addresses", self.cleaned_data["addresses"].replace(",", " ").split())

    def clean_event_types(self) -> Any:
        return self.clean_value("event_types", self.cleaned_data["event_types"].replace(",", " ").split())

    def clean_value(self, name: str, value: Any) -> Any:
        if self.current and value == getattr(self.current, name):
            return value
        try:
            return checked_slack_url(value) if name == "url" and self.kind == Kind.SLACK else CHECKS[name](value)
        except Refused as refusal:
            message = translate_message(str(refusal))
            raise forms.ValidationError(message.removeprefix(f"{name}: ")) from refusal

    def add_refusal(self, refusal: Refused) -> None:
        """Add the reason of a refusal to the field that it concerns, if any."""
        message = translate_message(str(refusal))
        name, _, reason = message.partition(": ")
        self.add_error(name if name in self.fields else None, reason if name in self.fields else message)


def read_kind(data: Mapping[str, Any]) -> str:
    """Return the kind that a form or a link names, by default a webhook."""
    kind = data.get("kind", "")
    return kind if kind in Kind.values else Kind.WEBHOOK


class NewSubscription(ResumableFormPage, View):
    history_event = "subscription.create"
    permission_required = "watcher_site.add_subscription"
    http_method_names = ["get", "post"]

    def get(self, request: HttpRequest) -> HttpResponse:
        data = self.resumed_data()
        return self.show(SubscriptionForm(data, kind=read_kind(request.GET if data is None else data)))

    def post(self, request: HttpRequest) -> HttpResponse:
        form = SubscriptionForm(request.POST, kind=read_kind(request.POST))
        if form.is_valid():
            try:
                made, secret = subscribe(**form.cleaned_data, kind=form.kind)
            except Refused as refusal:
                self.record_problem(refusal)
                form.add_refusal(refusal)
            else:
                if secret:
                    return show_secret(request, _("Subscription created"), made, secret)
                messages.success(request, _("Subscription created."))
                return redirect("notifications:detail", uuid=made.uuid)
        return self.show(form)

    def show(self, form: SubscriptionForm) -> HttpResponse:
        context = {
            "form": form,
            "kinds": Kind.choices,
            "lacks_mail_server": form.kind == Kind.MAIL and not settings.EMAIL_HOST,
            "heading": _("New subscription"),
            "back": reverse("notifications:list"),
        }
        return render(self.request, "notifications/subscription_form.html", context)


class ChangeSubscription(ResumableFormPage, View):
    history_event = "subscription.update"
    permission_required = "watcher_site.change_subscription"
    http_method_names = ["get", "post"]

    def get(self, request: HttpRequest, uuid: str) -> HttpResponse:
        current = self.find(uuid)
        texts = {name: " ".join(getattr(current, name) or ()) for name in ("event_types", "addresses")}
        initial = changeable_values(current) | texts
        form = SubscriptionForm(self.resumed_data(), initial=initial, kind=current.kind, current=current)
        return self.show(current, form)

    def post(self, request: HttpRequest, uuid: str) -> HttpResponse:
        current = self.find(uuid)
        form = SubscriptionForm(request.POST, kind=current.kind, current=current)
        if form.is_valid():
            try:
                change_subscription(current, form.cleaned_data)
            except Refused as refusal:
                self.record_problem(refusal, current)
                form.add_refusal(refusal)
            else:
                messages.success(request, _("Subscription saved. Its pending notifications are sent now."))
                return redirect("notifications:detail", uuid=current.uuid)
        return self.show(current, form)

    def find(self, uuid: str) -> Subscription:
        found: Subscription = get_object_or_404(Subscription.objects.present(), uuid=uuid)
        return found

    def show(self, subscription: Subscription, form: SubscriptionForm) -> HttpResponse:
        back = reverse("notifications:detail", args=[subscription.uuid])
        context = {"form": form, "heading": _("Change %(name)s") % {"name": subscription.name}, "back": back}
        return render(self.request, "notifications/subscription_form.html", context)


class SubscriptionOperationView(OperationView):
    model = Subscription
    permission_required = CHANGE

    def redirect_url(self, record: Subscription, done: bool) -> str:
        return reverse("notifications:detail", args=[record.uuid])


class SendTest(SubscriptionOperationView):
    history_event, policy = "subscription.test", "subscription:send_test"
    verb = _("send a test message")

    def perform(self, record: Subscription) -> str:
        send_test(record)
        return gettext("A test message is being sent. This page shows the result.")


class RenewSecret(SubscriptionOperationView):
    history_event, policy = "subscription.update", "subscription:renew_secret"
    verb = _("create a new secret")
    question = _("Create a new secret?")
    consequence = _("The new secret applies at once. The receiver refuses notifications until it has the new secret.")

    def perform(self, record: Subscription) -> str:
        self.renewed = renew_secret(record)
        return gettext("Notifications are now signed with the new secret.")

    def post(self, request: HttpRequest, **path: Any) -> HttpResponse:
        record = self.get_object()
        if not perform_with_message(self, record):
            return redirect(self.redirect_url(record, False))
        return show_secret(request, _("New secret"), *self.renewed)


class DeleteSubscription(OperationView):
    model = Subscription
    history_event = "subscription.delete"
    permission_required = "watcher_site.delete_subscription"
    verb = _("delete the subscription")
    question = _("Delete this subscription?")
    consequence = _("Notifications that have not been delivered yet are lost.")

    def perform(self, record: Subscription) -> str:
        unsubscribe(record)
        return _("Deleted subscription %(name)s.") % {"name": record}

    def redirect_url(self, record: Subscription, done: bool) -> str:
        return reverse("notifications:list") if done else reverse("notifications:detail", args=[record.uuid])


def show_secret(request: HttpRequest, heading: Text, subscription: Subscription, secret: str) -> HttpResponse:
    about = _("Notifications to %(name)s are signed with this secret. Store it where the receiver can read it.") % {
        "name": subscription.name
    }
    return show_secret_once(request, heading, secret, about, reverse("notifications:detail", args=[subscription.uuid]))
