"""The console's pages of who is told."""

from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views import View

from watcher_site.kept_forms import KeepsForm
from watcher_site.models import Delivery, Subscription
from watcher_site.models.notifications import NAME_LENGTH, URL_LENGTH
from watcher_site.notifications.subscriptions import change_subscription, changeable, subscribe, unsubscribe, url_for
from watcher_site.notifications.tables import SubscriptionFilters, SubscriptionTable
from watcher_site.pages import ListPage, RecordPage, Verb
from watcher_site.refusals import Refused


class SubscriptionList(ListPage):
    model = Subscription
    permission_required = "watcher_site.view_subscription"
    table_class = SubscriptionTable
    filterset_class = SubscriptionFilters
    template_name = "notifications/subscription_list.html"
    heading = "Subscriptions"
    guidance = "Nobody has subscribed. A subscription has notifications of audits, plans and actions sent to a URL."

    def get_queryset(self) -> QuerySet[Subscription]:
        waiting, undelivered = (
            Count("deliveries", filter=Q(deliveries__state=state))
            for state in (Delivery.State.PENDING, Delivery.State.UNDELIVERED)
        )
        return Subscription.objects.present().annotate(waiting_count=waiting, undelivered_count=undelivered)


class SubscriptionPage(RecordPage):
    """One receiver: what it hears of, and how it fares."""

    model = Subscription
    permission_required = "watcher_site.view_subscription"
    template_name = "notifications/subscription_detail.html"

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        counts = dict(self.object.deliveries.order_by().values_list("state").annotate(Count("pk")))
        return super().get_context_data(
            url=url_for(self.request.user, self.object.url),
            pending=counts.get(Delivery.State.PENDING, 0),
            undelivered=counts.get(Delivery.State.UNDELIVERED, 0),
            **context,
        )


class SubscriptionForm(forms.Form):
    name = forms.CharField(max_length=NAME_LENGTH)
    url = forms.CharField(label="URL", max_length=URL_LENGTH, help_text="Each notification is a POST to it.")
    event_types = forms.CharField(
        label="Events", initial="*", help_text="With blanks between them; * stands for any letters: action.* *.error"
    )
    enabled = forms.BooleanField(required=False, initial=True)

    def clean_event_types(self) -> list[str]:
        patterns: list[str] = self.cleaned_data["event_types"].replace(",", " ").split()
        return patterns

    def refuse(self, refusal: Refused) -> None:
        """Put why it cannot be so beside the field that it is about."""
        name, _, words = str(refusal).partition(": ")
        self.add_error(name if name in self.fields else None, words if name in self.fields else str(refusal))


class NewSubscription(KeepsForm, View):
    deed = "subscription.create"
    permission_required = "watcher_site.add_subscription"
    http_method_names = ["get", "post"]

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.show(SubscriptionForm(self.kept()))

    def post(self, request: HttpRequest) -> HttpResponse:
        form = SubscriptionForm(request.POST)
        if form.is_valid():
            try:
                made, secret = subscribe(**form.cleaned_data)
            except Refused as refusal:
                self.note(refusal)
                form.refuse(refusal)
            else:
                return render(request, "notifications/secret.html", {"subscription": made, "secret": secret})
        return self.show(form)

    def show(self, form: SubscriptionForm) -> HttpResponse:
        context = {"form": form, "heading": "New subscription", "back": reverse("notifications:list")}
        return render(self.request, "notifications/subscription_form.html", context)


class ChangeSubscription(KeepsForm, View):
    deed = "subscription.update"
    permission_required = "watcher_site.change_subscription"
    http_method_names = ["get", "post"]

    def get(self, request: HttpRequest, uuid: str) -> HttpResponse:
        standing = self.find(uuid)
        initial = {**changeable(standing), "event_types": " ".join(standing.event_types)}
        return self.show(standing, SubscriptionForm(self.kept(), initial=initial))

    def post(self, request: HttpRequest, uuid: str) -> HttpResponse:
        standing, form = self.find(uuid), SubscriptionForm(request.POST)
        if form.is_valid():
            try:
                change_subscription(standing, form.cleaned_data)
            except Refused as refusal:
                self.note(refusal, standing)
                form.refuse(refusal)
            else:
                messages.success(request, "Changed. What waits for it is sent now.")
                return redirect("notifications:detail", uuid=standing.uuid)
        return self.show(standing, form)

    def find(self, uuid: str) -> Subscription:
        found: Subscription = get_object_or_404(Subscription.objects.present(), uuid=uuid)
        return found

    def show(self, subscription: Subscription, form: SubscriptionForm) -> HttpResponse:
        back = reverse("notifications:detail", args=[subscription.uuid])
        context = {"form": form, "heading": f"Change {subscription.name}", "back": back}
        return render(self.request, "notifications/subscription_form.html", context)


class DeleteSubscription(Verb):
    model = Subscription
    deed = "subscription.delete"
    permission_required = "watcher_site.delete_subscription"
    verb = "delete the subscription"
    question = "Delete this subscription?"
    consequence = "What was not yet delivered to it is lost."

    def perform(self, record: Subscription) -> str:
        unsubscribe(record)
        return f"Deleted subscription {record}."

    def where_to(self, record: Subscription, done: bool) -> str:
        return reverse("notifications:list") if done else reverse("notifications:detail", args=[record.uuid])
