"""Gauges of the site's processes."""

from collections.abc import Iterator

from django.db.models import Count, Max, Q, Sum
from prometheus_client import Metric
from prometheus_client.registry import Collector

from watcher_site.models import Service
from watcher_site.models.services import ACTIVE, FAILED
from watcher_site.monitoring.definitions import Values, table_gauge
from watcher_site.processes.service_health import CONSEQUENCES

SERVICES = table_gauge("watcher_services", "Processes of the site, by their name and status", "service", "status")
LAG = table_gauge("watcher_listener_lag_seconds", "Time by which a listener is behind the cloud", "host")
MESSAGES = table_gauge(
    "watcher_listener_messages",
    "Messages that the active listeners of a host have handled since they began, and those of them that they skipped",
    *("host", "outcome"),
)


class ServiceGauges(Collector):
    """The gauges of services and listeners, with two queries."""

    def collect(self) -> Iterator[Metric]:
        yield self.count_services()
        lags: Values = {}
        messages: Values = {}
        listening = Service.objects.active().filter(name=Service.LISTENER).exclude(lag=None)
        found = listening.order_by("host").values_list("host")
        for host, longest, handled, skipped in found.annotate(Max("lag"), Sum("handled"), Sum("skipped")):
            lags[(host,)] = longest
            messages[host, "handled"], messages[host, "skipped"] = handled, skipped
        yield LAG.of(lags)
        yield MESSAGES.of(messages)

    def count_services(self) -> Metric:
        rows = Service.objects.present().order_by().values_list("name")
        is_active = Q(last_seen_up__gte=Service.heartbeat_deadline())
        counted = rows.annotate(Count("pk"), active=Count("pk", filter=is_active))
        found = {name: (active, number - active) for name, number, active in counted}
        numbers: Values = {}
        for name in CONSEQUENCES:
            numbers[name, ACTIVE], numbers[name, FAILED] = found.get(name, (0, 0))
        return SERVICES.of(numbers)
