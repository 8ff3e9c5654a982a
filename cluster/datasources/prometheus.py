"""Samples from a Prometheus server, queried over its HTTP API.

The series are those of node_exporter and of Ceilometer, as in Watcher (docs/metrics.md, "Prometheus"). Any other
series holds the metric itself, in its unit.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import orjson
import requests
from django.conf import settings

from cluster.datasources.base import METRICS, Reading
from cluster.datasources.http import HTTPDatasource, shared_by_vcpus, with_short_names

QUERY_PATH = "/api/v1/query"
NODE_CPU, AVAILABLE, TOTAL = "node_cpu_seconds_total", "node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes"
SERVER_CPU = "ceilometer_cpu"
IDLE = 'mode="idle",'
SERIES = {
    **{metric: metric for metric in METRICS},
    "host_cpu_usage": NODE_CPU,
    "host_ram_usage": AVAILABLE,
    "instance_cpu_usage": SERVER_CPU,
    "instance_ram_usage": "ceilometer_memory_usage",
}
FUNCTIONS = {"mean": "avg", "min": "min", "max": "max", "count": "count"}
# What is counted there is idle: the most use is the least of it.
INVERTED = {"mean": "avg", "min": "max", "max": "min", "count": "count"}
# How many times a granularity the means over it are looked at, to find the largest.
LOOKS = 4


class Prometheus(HTTPDatasource):
    """Each metric has a series: that of `SERIES`, or the one that `settings.PROMETHEUS_METRICS` names.

    The label `settings.PROMETHEUS_SERVER_LABEL` holds a server's UUID, and `settings.PROMETHEUS_NODE_LABEL` a compute
    node's host name, or its fully qualified name. One instant query answers a reading for all resources.
    """

    name = "prometheus"

    @property
    def place(self) -> str:
        # Without the secrets that the URL may have.
        parts = urlsplit(settings.PROMETHEUS_URL)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)

    def read(self, reading: Reading) -> Mapping[str, float]:
        series, label = series_of(reading.metric), label_of(reading.metric)
        found = values(self.query(make_expression(reading, series, label)), label)
        if series == SERVER_CPU and reading.aggregate != "count":
            return shared_by_vcpus(found)
        return with_short_names(found) if is_of_node(reading.metric) else found

    def find_metrics(self) -> set[str]:
        names = "|".join(sorted({series_of(metric) for metric in METRICS}))
        found = self.query(f'count by (__name__) ({{__name__=~"{names}"}})')
        present = {sample["metric"].get("__name__") for sample in found}
        return {metric for metric in METRICS if series_of(metric) in present}

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Run an instant query that gives a vector, and return its samples.

        Raises:
            DatasourceError: there was no answer, the query was refused, or the answer is not Prometheus's.
        """
        status, body = self.request(partial(self.send, expression))
        reason = ""
        try:
            answer = orjson.loads(body)
            if status < 300 and answer["status"] == "success":
                vector: list[dict[str, Any]] = answer["data"]["result"]
                # As each sample is read later: what is no vector ends here.
                [(sample["metric"].items(), float(sample["value"][1])) for sample in vector]
                return vector
            reason = self.find_reason(answer)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            pass  # The status is all that there is to report.
        raise self.refusal(status, reason)

    def find_reason(self, answer: Any) -> str:
        """Return the reason of a refusal. Raises: what an answer of another form does."""
        return str(answer["error"])

    def send(self, expression: str) -> requests.Response:
        # A redirect is not followed: it leads from the API to a page, and would carry the credentials along.
        return requests.post(
            settings.PROMETHEUS_URL.rstrip("/") + QUERY_PATH,
            data={"query": expression},
            timeout=settings.DATASOURCE_TIMEOUT,
            stream=True,
            allow_redirects=False,
            **credentials(),
        )


def credentials() -> dict[str, Any]:
    """Return who we are and whom we trust, where the settings say so."""
    known: dict[str, Any] = {"verify": settings.PROMETHEUS_CAFILE or True}
    if settings.PROMETHEUS_USERNAME:
        known["auth"] = (settings.PROMETHEUS_USERNAME, settings.PROMETHEUS_PASSWORD)
    if settings.PROMETHEUS_CERTFILE:
        known["cert"] = (settings.PROMETHEUS_CERTFILE, settings.PROMETHEUS_KEYFILE or settings.PROMETHEUS_CERTFILE)
    return known


def is_of_node(metric: str) -> bool:
    return metric.startswith("host_")


def label_of(metric: str) -> str:
    label: str = settings.PROMETHEUS_NODE_LABEL if is_of_node(metric) else settings.PROMETHEUS_SERVER_LABEL
    return label


def series_of(metric: str) -> str:
    series: str = settings.PROMETHEUS_METRICS.get(metric, SERIES[metric])
    return series


def values(vector: list[dict[str, Any]], label: str) -> dict[str, float]:
    found = {sample["metric"].get(label, ""): float(sample["value"][1]) for sample in vector}
    return {resource: value for resource, value in found.items() if math.isfinite(value)}


def make_expression(reading: Reading, series: str, label: str) -> str:
    """Return the query that answers a reading: one number for each value of the label.

    Of `SERVER_CPU` it is the use in percent of one vcpu, as the series does not tell how many a server has.
    """
    if reading.aggregate != "count":
        if series == NODE_CPU:
            return f"100 - 100 * {rates(reading, NODE_CPU, label, INVERTED, IDLE)}"
        if series == SERVER_CPU:
            return f"{rates(reading, SERVER_CPU, label, FUNCTIONS)} / 1e7"
        if series == AVAILABLE:
            most = f"max by ({label}) (max_over_time({selector(reading, TOTAL, label)}))"
            free = f"max by ({label}) ({INVERTED[reading.aggregate]}_over_time({selector(reading, AVAILABLE, label)}))"
            return f"({most} - {free}) / 1024"
    return f"max by ({label}) ({FUNCTIONS[reading.aggregate]}_over_time({selector(reading, series, label)}))"


def rates(reading: Reading, series: str, label: str, functions: dict[str, str], filtered: str = "") -> str:
    """Return how fast a counter grew over the period: its mean, or the most or least of any granularity within it."""
    window = reading.granularity
    if reading.aggregate == "mean" or not 0 < window < reading.period:
        return f"avg by ({label}) (rate({selector(reading, series, label, filtered=filtered)}))"
    rate = f"avg by ({label}) (rate({selector(reading, series, label, window, filtered)}))"
    looks = f"[{duration(reading.period - window)}:{duration(window / LOOKS)}]"
    return f"{functions[reading.aggregate]}_over_time({rate}{looks})"


def selector(reading: Reading, series: str, label: str, window: float | None = None, filtered: str = "") -> str:
    offset = f" offset {duration(reading.ago)}" if reading.ago else ""
    return f'{series}{{{filtered}{label}!=""}}[{duration(window or reading.period)}]{offset}'


def duration(seconds: float) -> str:
    return f"{max(round(seconds * 1000), 1)}ms"
