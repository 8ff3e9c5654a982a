"""Samples that a Prometheus server keeps, asked over its HTTP API."""

import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import requests
from django.conf import settings
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_fixed

from cluster.datasources.base import METRICS, Datasource, DatasourceError, Reading

FUNCTIONS = {"mean": "avg", "min": "min", "max": "max", "count": "count"}


class Unavailable(Exception):
    """The server did not answer, or with an error of its own: it may answer the next time."""


class Prometheus(Datasource):
    """Each metric is a series of its own, named by `settings.PROMETHEUS_METRICS` or as the metric is.

    The label `settings.PROMETHEUS_SERVER_LABEL` holds a server's UUID, and `settings.PROMETHEUS_NODE_LABEL` a compute
    node's host name. One instant query answers a reading for all resources.
    """

    name = "prometheus"

    def read(self, reading: Reading) -> Mapping[str, float]:
        label = label_of(reading.metric)
        offset = f" offset {milliseconds(reading.ago)}" if reading.ago else ""
        series = f'{series_of(reading.metric)}{{{label}!=""}}[{milliseconds(reading.period)}]{offset}'
        found = self.query(f"max by ({label}) ({FUNCTIONS[reading.aggregate]}_over_time({series}))")
        values = {answer["metric"][label]: float(answer["value"][1]) for answer in found}
        return {resource: value for resource, value in values.items() if math.isfinite(value)}

    def find_metrics(self) -> set[str]:
        names = "|".join(series_of(metric) for metric in METRICS)
        found = self.query(f'count by (__name__) ({{__name__=~"{names}"}})')
        present = {answer["metric"]["__name__"] for answer in found}
        return {metric for metric in METRICS if series_of(metric) in present}

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Ask an instant query that gives a vector, several times if need be.

        Raises:
            DatasourceError: there is no answer to it.
        """
        retrying = Retrying(
            retry=retry_if_exception_type(Unavailable),
            stop=stop_after_attempt(settings.DATASOURCE_ATTEMPTS),
            wait=wait_fixed(settings.DATASOURCE_WAIT),
            reraise=True,
        )
        try:
            return retrying(ask, expression)
        except Unavailable as problem:
            raise DatasourceError(f"The data source {place()} is not available: {problem}") from problem


def label_of(metric: str) -> str:
    label: str = settings.PROMETHEUS_NODE_LABEL if metric.startswith("host_") else settings.PROMETHEUS_SERVER_LABEL
    return label


def series_of(metric: str) -> str:
    series: str = settings.PROMETHEUS_METRICS.get(metric, metric)
    return series


def milliseconds(seconds: float) -> str:
    return f"{max(round(seconds * 1000), 1)}ms"


def place() -> str:
    """Name the server without what may be secret in its URL."""
    parts = urlsplit(settings.PROMETHEUS_URL)
    return f"prometheus at {parts.hostname}:{parts.port}" if parts.port else f"prometheus at {parts.hostname}"


def ask(expression: str) -> list[dict[str, Any]]:
    """Ask once.

    Raises:
        Unavailable: no answer, or one that tells of trouble on the other side.
        DatasourceError: the question was refused, or the answer is not Prometheus's.
    """
    address = settings.PROMETHEUS_URL.rstrip("/") + "/api/v1/query"
    try:
        answer = requests.post(address, data={"query": expression}, timeout=settings.DATASOURCE_TIMEOUT)
    except requests.RequestException as problem:
        raise Unavailable(type(problem).__name__) from problem
    if answer.status_code >= 500:
        raise Unavailable(f"status {answer.status_code}")
    try:
        found: list[dict[str, Any]] = answer.json()["data"]["result"]
    except (ValueError, KeyError, TypeError) as problem:
        raise DatasourceError(f"The data source {place()} refused the query with status {answer.status_code}.") from (
            problem
        )
    return found
