"""``/metrics``: the backlog of deliveries in Prometheus' format, for people who may see undelivered notifications."""

from django.db.models import Count, Min
from django.http import HttpResponse
from django.utils import timezone
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest
from rest_framework.request import Request
from rest_framework.response import Response

from watcher_site.api.views import VersionedView, note_refused_reading
from watcher_site.models import Delivery, Notification
from watcher_site.notifications.subscriptions import BROKER


class MetricsView(VersionedView):
    """The numbers for monitoring the site."""

    model = Delivery
    policy = "metrics"
    permissions_required: dict[str, str] = {}
    action = "get"
    detail = False

    def policy_name(self) -> str:
        return "metrics:get"

    def handle_exception(self, problem: Exception) -> Response:
        response: Response = super().handle_exception(problem)
        note_refused_reading(self, problem, response)
        return response

    def history_event(self) -> str:
        return "metrics.view"

    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(generate_latest(backlog()), content_type=CONTENT_TYPE_LATEST)


def backlog() -> CollectorRegistry:
    """Return what waits and what was given up, in a fixed number of queries."""
    registry = CollectorRegistry()
    new = Gauge("watcher_notifications_undispatched", "Notifications that no relay has looked at", registry=registry)
    new.set(Notification.objects.undispatched().order_by().count())
    number = Gauge(
        "watcher_deliveries",
        "Deliveries that wait (PENDING) or were given up (UNDELIVERED)",
        ["receiver", "state"],
        registry=registry,
    )
    age = Gauge(
        "watcher_deliveries_oldest_seconds", "Since when the oldest delivery waits", ["receiver"], registry=registry
    )
    counts = Delivery.objects.order_by().values_list("subscription__name", "state")
    for receiver, state, count, oldest in counts.annotate(Count("pk"), Min("created_at")):
        number.labels(receiver or BROKER, state).set(count)
        if state == Delivery.State.PENDING:
            age.labels(receiver or BROKER).set((timezone.now() - oldest).total_seconds())
    return registry
