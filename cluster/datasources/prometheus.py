"""The data source Prometheus, queried over its HTTP API.

The default series are those of node_exporter and Ceilometer, as in Watcher (docs/metrics.md, "Prometheus"). Any other
series contains the metric itself, in its unit.
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
# For series that measure idle time or free memory.
INVERTED = {"mean": "avg", "min": "max", "max": "min", "count": "count"}
# The number of evaluations of a moving mean within a granularity, to find its maximum.
STEPS_PER_WINDOW = 4


class Prometheus(HTTPDatasource):
    """The data source Prometheus. `settings.PROMETHEUS_METRICS` overrides the names of series in `SERIES`.

    The label `settings.PROMETHEUS_SERVER_LABEL` contains a server's UUID, and `settings.PROMETHEUS_NODE_LABEL` a
    compute node's host name, which may be fully qualified. One instant query returns a reading for all resources.
    """

    name = "prometheus"

    @property
    def place(self) -> str:
        # The URL may contain secrets.
        parts = urlsplit(settings.PROMETHEUS_URL)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)

    def read(self, reading: Reading) -> Mapping[str, float]:
        series, label = series_of(reading.metric), label_of(reading.metric)
        measurements = values(self.query(make_expression(reading, series, label)), label)
        if series == SERVER_CPU and reading.aggregate != "count":
            return shared_by_vcpus(measurements)
        return with_short_names(measurements) if is_of_node(reading.metric) else measurements

    def find_metrics(self) -> set[str]:
        names = "|".join(sorted({series_of(metric) for metric in METRICS}))
        vector = self.query(f'count by (__name__) ({{__name__=~"{names}"}})')
        present = {sample["metric"].get("__name__") for sample in vector}
        return {metric for metric in METRICS if series_of(metric) in present}

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Run an instant query that returns a vector, and return its samples.

        Raises:
            DatasourceError: Prometheus did not respond, refused the query, or the response is unusable.
        """
        status, body = self.request(partial(self.send, expression))
        reason = ""
        try:
            response = orjson.loads(body)
            if status < 300 and response["status"] == "success":
                vector: list[dict[str, Any]] = response["data"]["result"]
                # Validates the format that callers read.
                [(sample["metric"].items(), float(sample["value"][1])) for sample in vector]
                return vector
            reason = self.find_reason(response)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            pass  # The error then contains only the status.
        raise self.refusal(status, reason)

    def find_reason(self, response: Any) -> str:
        """Return the reason of a refusal. Raises: `KeyError`, `TypeError` and others for an unexpected format."""
        return str(response["error"])

    def send(self, expression: str) -> requests.Response:
        # Following a redirect would send the credentials to another address.
        return requests.post(
            settings.PROMETHEUS_URL.rstrip("/") + QUERY_PATH,
            data={"query": expression},
            timeout=settings.DATASOURCE_TIMEOUT,
            stream=True,
            allow_redirects=False,
            **credentials(),
        )


def credentials() -> dict[str, Any]:
    """Return the arguments of requests for authentication and trusted certificates."""
    options: dict[str, Any] = {"verify": settings.PROMETHEUS_CAFILE or True}
    if settings.PROMETHEUS_USERNAME:
        options["auth"] = (settings.PROMETHEUS_USERNAME, settings.PROMETHEUS_PASSWORD)
    if settings.PROMETHEUS_CERTFILE:
        options["cert"] = (settings.PROMETHEUS_CERTFILE, settings.PROMETHEUS_KEYFILE or settings.PROMETHEUS_CERTFILE)
    return options


def is_of_node(metric: str) -> bool:
    return metric.startswith("host_")


def label_of(metric: str) -> str:
    label: str = settings.PROMETHEUS_NODE_LABEL if is_of_node(metric) else settings.PROMETHEUS_SERVER_LABEL
    return label


def series_of(metric: str) -> str:
    series: str = settings.PROMETHEUS_METRICS.get(metric, SERIES[metric])
    return series


def values(vector: list[dict[str, Any]], label: str) -> dict[str, float]:
    samples = {sample["metric"].get(label, ""): float(sample["value"][1]) for sample in vector}
    return {resource: value for resource, value in samples.items() if math.isfinite(value)}


def make_expression(reading: Reading, series: str, label: str) -> str:
    """Return the query of a reading, which returns one number for each value of the label.

    For `SERVER_CPU`, it is the use in percent of one vCPU, since the series does not contain the number of vCPUs.
    """
    if reading.aggregate != "count":
        if series == NODE_CPU:
            return f"100 - 100 * {rates(reading, NODE_CPU, label, INVERTED, IDLE)}"
        if series == SERVER_CPU:
            return f"{rates(reading, SERVER_CPU, label, FUNCTIONS)} / 1e7"
        if series == AVAILABLE:
            maximum = f"max by ({label}) (max_over_time({selector(reading, TOTAL, label)}))"
            free = f"max by ({label}) ({INVERTED[reading.aggregate]}_over_time({selector(reading, AVAILABLE, label)}))"
            return f"({maximum} - {free}) / 1024"
    return f"max by ({label}) ({FUNCTIONS[reading.aggregate]}_over_time({selector(reading, series, label)}))"


def rates(reading: Reading, series: str, label: str, functions: dict[str, str], filtered: str = "") -> str:
    """Return the expression of a counter's rate: the mean over the period, or an extreme of moving means."""
    window = reading.granularity
    if reading.aggregate == "mean" or not 0 < window < reading.period:
        return f"avg by ({label}) (rate({selector(reading, series, label, filtered=filtered)}))"
    rate = f"avg by ({label}) (rate({selector(reading, series, label, window, filtered)}))"
    subquery = f"[{duration(reading.period - window)}:{duration(window / STEPS_PER_WINDOW)}]"
    return f"{functions[reading.aggregate]}_over_time({rate}{subquery})"


def selector(reading: Reading, series: str, label: str, window: float | None = None, filtered: str = "") -> str:
    offset = f" offset {duration(reading.ago)}" if reading.ago else ""
    return f'{series}{{{filtered}{label}!=""}}[{duration(window or reading.period)}]{offset}'


def duration(seconds: float) -> str:
    return f"{max(round(seconds * 1000), 1)}ms"
