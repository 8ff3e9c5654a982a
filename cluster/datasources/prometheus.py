"""Samples from a Prometheus server, queried over its HTTP API.

The series are those of node_exporter and of Ceilometer, as in Watcher (docs/metrics.md, "Prometheus"). Any other
series holds the metric itself, in its unit. A query is repeated where that may help, within a time limit.
"""

import math
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import orjson
import requests
import structlog
from django.conf import settings
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_fixed
from urllib3.exceptions import HTTPError

from cluster.datasources.base import METRICS, Datasource, DatasourceError, Reading
from cluster.models import Server
from watcher_site.messages import cut, without_places

log = structlog.get_logger(__name__)
TOO_MANY_REQUESTS = 429
CHUNK = 64 * 1024
# More than the answer for a hundred thousand servers, in bytes.
LARGEST = 64 * 1024 * 1024

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


class Prometheus(Datasource):
    """Each metric has a series: that of `SERIES`, or the one that `settings.PROMETHEUS_METRICS` names.

    The label `settings.PROMETHEUS_SERVER_LABEL` holds a server's UUID, and `settings.PROMETHEUS_NODE_LABEL` a compute
    node's host name, or its fully qualified name. One instant query answers a reading for all resources.
    """

    name = "prometheus"

    def read(self, reading: Reading) -> Mapping[str, float]:
        series, label = series_of(reading.metric), label_of(reading.metric)
        found = values(query(make_expression(reading, series, label)), label)
        if series == SERVER_CPU and reading.aggregate != "count":
            return shared_by_vcpus(found)
        return with_short_names(found) if is_of_node(reading.metric) else found

    def find_metrics(self) -> set[str]:
        names = "|".join(sorted({series_of(metric) for metric in METRICS}))
        found = query(f'count by (__name__) ({{__name__=~"{names}"}})')
        present = {sample["metric"].get("__name__") for sample in found}
        return {metric for metric in METRICS if series_of(metric) in present}


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


def shared_by_vcpus(found: Mapping[str, float]) -> dict[str, float]:
    """Return percentages of all vcpus of each server for percentages of one. Servers that we do not know are left out.

    Prometheus extrapolates, so that a busy server may come out a little above 100 %.
    """
    vcpus = {str(uuid): number for uuid, number in Server.objects.present().values_list("uuid", "vcpus")}
    return {uuid: min(value / max(vcpus[uuid], 1), 100) for uuid, value in found.items() if uuid in vcpus}


def with_short_names(found: Mapping[str, float]) -> dict[str, float]:
    """Add each value under the first part of its name, where that names one node: clouds may know it by that."""
    times = Counter(name.partition(".")[0] for name in found)
    return {short: value for name, value in found.items() if times[short := name.partition(".")[0]] == 1} | dict(found)


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


class Unavailable(Exception):
    """The server did not answer, or with an error of its own: it may answer the next time."""


def query(expression: str) -> list[dict[str, Any]]:
    """Run an instant query that gives a vector, with retries, and return its samples.

    Raises:
        DatasourceError: the query was not answered.
    """
    retrying = Retrying(
        retry=retry_if_exception_type(Unavailable),
        stop=stop_after_attempt(settings.DATASOURCE_ATTEMPTS),
        wait=wait_fixed(settings.DATASOURCE_WAIT),
        reraise=True,
    )
    try:
        return vector_of(*retrying(ask, expression))
    except Unavailable as problem:
        log.warning("the data source is not available", place=server_address(), problem=str(problem))
        raise DatasourceError(f"The data source prometheus is not available: {problem}") from problem


def server_address() -> str:
    """Return the host and the port of the server, for the log, without the secrets that its URL may have."""
    parts = urlsplit(settings.PROMETHEUS_URL)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def ask(expression: str) -> tuple[int, bytes]:
    """Send a query once, and return the status and the body of an answer that a retry would not change.

    Raises:
        Unavailable: there is no answer, or the server reports a temporary problem.
        DatasourceError: the server could not be trusted, or a file that is needed for that could not be read.
    """
    address = settings.PROMETHEUS_URL.rstrip("/") + "/api/v1/query"
    deadline = time.monotonic() + settings.DATASOURCE_TIMEOUT
    try:
        # A redirect is not followed: it leads from the API to a page, and would carry the credentials along.
        with requests.post(
            address,
            data={"query": expression},
            timeout=settings.DATASOURCE_TIMEOUT,
            stream=True,
            allow_redirects=False,
            **credentials(),
        ) as answer:
            if answer.status_code >= 500 or answer.status_code == TOO_MANY_REQUESTS:
                raise Unavailable(f"status {answer.status_code}")
            return answer.status_code, body_of(answer, deadline)
    except requests.exceptions.SSLError as problem:
        reason = without_places(str(find_root_cause(problem)))
        raise DatasourceError(cut(f"The data source prometheus is not trusted: {reason}")) from problem
    except (requests.RequestException, HTTPError) as problem:
        raise Unavailable(type(problem).__name__) from problem
    except OSError as problem:
        raise DatasourceError(f"The data source prometheus can not be asked: {problem}") from problem


def credentials() -> dict[str, Any]:
    """Return who we are and whom we trust, where the settings say so."""
    known: dict[str, Any] = {"verify": settings.PROMETHEUS_CAFILE or True}
    if settings.PROMETHEUS_USERNAME:
        known["auth"] = (settings.PROMETHEUS_USERNAME, settings.PROMETHEUS_PASSWORD)
    if settings.PROMETHEUS_CERTFILE:
        known["cert"] = (settings.PROMETHEUS_CERTFILE, settings.PROMETHEUS_KEYFILE or settings.PROMETHEUS_CERTFILE)
    return known


def body_of(answer: requests.Response, deadline: float) -> bytes:
    """Read an answer, which may come in drops: the timeout of a connection is only that between two of them."""
    body = bytearray()
    while chunk := answer.raw.read1(CHUNK, decode_content=True):
        body += chunk
        if time.monotonic() > deadline:
            raise Unavailable(f"no whole answer within {settings.DATASOURCE_TIMEOUT:g} seconds")
        if len(body) > LARGEST:
            raise DatasourceError(f"The answer of the data source prometheus is larger than {LARGEST} bytes.")
    return bytes(body)


def find_root_cause(problem: BaseException) -> BaseException:
    """Return the innermost of the exceptions that urllib3 packs into each other."""
    inner = next((part for part in problem.args if isinstance(part, BaseException)), None)
    inner = inner or getattr(problem, "reason", None)
    return find_root_cause(inner) if isinstance(inner, BaseException) else problem


def vector_of(status: int, body: bytes) -> list[dict[str, Any]]:
    """Return the samples of an answer.

    Raises:
        DatasourceError: the question was refused, or the answer is not Prometheus's.
    """
    try:
        answer = orjson.loads(body)
        if answer["status"] == "success":
            vector: list[dict[str, Any]] = answer["data"]["result"]
            # As each sample is read later: what is no vector ends here.
            [(sample["metric"].items(), float(sample["value"][1])) for sample in vector]
            return vector
        reason = f": {answer['error']}"
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        reason = ", and not as Prometheus does." if status < 300 else "."
    verb = "answered" if status < 300 else "refused the query"
    raise DatasourceError(cut(without_places(f"The data source prometheus {verb} with status {status}{reason}")))
