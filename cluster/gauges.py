"""The Prometheus gauges of readings of the cloud."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from cluster.models import Synchronization
from watcher_site.monitoring.definitions import table_gauge

LAST_READING = table_gauge(
    "watcher_cloud_last_reading_timestamp_seconds",
    "When the last complete reading of the cloud that succeeded began, as a Unix time; missing before the first one",
)
FAILED = table_gauge("watcher_cloud_last_reading_failed", "1 if the last reading of the cloud failed, else 0")


class CloudGauges(Collector):
    """The gauges of this app, in one query."""

    def collect(self) -> Iterator[Metric]:
        row = Synchronization.objects.filter(pk=Synchronization.ONLY).values_list("succeeded_at", "problem").first()
        if row is None:
            return
        succeeded_at, problem = row
        if succeeded_at:
            yield LAST_READING.single(succeeded_at.timestamp())
        yield FAILED.single(bool(problem))
