"""The declarations of metrics, with their names, help texts and labels, which the documentation lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from prometheus_client import Counter, Histogram, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily

# The creation times of counters would double the number of samples.
disable_created_metrics()
# The value of a gauge for each combination of labels.
Values = dict[tuple[str, ...], float]


class Definition(NamedTuple):
    """A metric in the documentation. The name of a counter has no ``_total``."""

    name: str
    kind: str
    text: str
    labels: tuple[str, ...]


DEFINITIONS: list[Definition] = []
"""All metrics of the site, in the order in which their modules are loaded."""


def counter(name: str, text: str, *labels: str) -> Counter:
    """Declare a counter of this process."""
    DEFINITIONS.append(Definition(name, "counter", text, labels))
    return Counter(name, text, labels)


def histogram(name: str, text: str, *labels: str, buckets: Sequence[float]) -> Histogram:
    """Declare a histogram of this process, with the upper bounds of its buckets."""
    DEFINITIONS.append(Definition(name, "histogram", text, labels))
    return Histogram(name, text, labels, buckets=buckets)


@dataclass(frozen=True)
class TableGauge:
    """A gauge whose values are queried from the database at each scrape."""

    name: str
    text: str
    labels: tuple[str, ...]

    def of(self, values: Values) -> GaugeMetricFamily:
        """Return the gauge with a value for each combination of labels."""
        family = GaugeMetricFamily(self.name, self.text, labels=self.labels)
        for labels, value in values.items():
            family.add_metric(labels, value)
        return family

    def single(self, value: float) -> GaugeMetricFamily:
        """Return the gauge, which has no labels, with its value."""
        return self.of({(): value})


def table_gauge(name: str, text: str, *labels: str) -> TableGauge:
    """Declare a gauge whose values are queried from the database."""
    DEFINITIONS.append(Definition(name, "gauge", text, labels))
    return TableGauge(name, text, labels)
