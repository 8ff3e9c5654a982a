"""The gauges of the outbox and of deliveries."""

from collections.abc import Iterator

from django.db.models import Count, Min
from django.utils import timezone
from prometheus_client import Metric
from prometheus_client.registry import Collector

from watcher_site.models import Delivery, Notification, Subscription
from watcher_site.monitoring.definitions import Values, table_gauge
from watcher_site.notifications.subscriptions import BROKER

UNDISPATCHED = table_gauge("watcher_notifications_undispatched", "Notifications that no relay has dispatched")
OLDEST_UNDISPATCHED = table_gauge(
    "watcher_notifications_oldest_undispatched_seconds",
    "Age of the oldest notification that no relay has dispatched; 0 without any",
)
DELIVERIES = table_gauge(
    "watcher_deliveries", "Deliveries that are pending (PENDING) or dead letters (UNDELIVERED)", "receiver", "state"
)
OLDEST_DELIVERY = table_gauge(
    "watcher_deliveries_oldest_seconds", "Age of the oldest pending delivery of a receiver; 0 without any", "receiver"
)


class NotificationGauges(Collector):
    """The gauges of notifications, with three queries."""

    def collect(self) -> Iterator[Metric]:
        new = Notification.objects.undispatched().order_by().aggregate(number=Count("pk"), oldest=Min("created_at"))
        yield UNDISPATCHED.single(new["number"])
        yield OLDEST_UNDISPATCHED.single((timezone.now() - new["oldest"]).total_seconds() if new["oldest"] else 0)
        rows = Delivery.objects.order_by().values_list("subscription__name", "state")
        receivers = [BROKER, *Subscription.objects.present().order_by().values_list("name", flat=True)]
        numbers: Values = {(receiver, str(state)): 0 for receiver in receivers for state in Delivery.State}
        ages: Values = {(receiver,): 0 for receiver in receivers}
        for receiver, state, number, oldest in rows.annotate(Count("pk"), Min("created_at")):
            numbers[receiver or BROKER, state] = number
            if state == Delivery.State.PENDING:
                ages[(receiver or BROKER,)] = (timezone.now() - oldest).total_seconds()
        yield DELIVERIES.of(numbers)
        yield OLDEST_DELIVERY.of(ages)
