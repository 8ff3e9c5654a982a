"""Samples from a Prometheus server, queried over its HTTP API."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from cluster.datasources.base import METRICS, Datasource, Reading
from cluster.datasources.prometheus_client import query
from cluster.datasources.promql import SERIES, SERVER_CPU, expression
from cluster.models import Server


class Prometheus(Datasource):
    """Each metric has a series: that of `SERIES`, or the one that `settings.PROMETHEUS_METRICS` names.

    The label `settings.PROMETHEUS_SERVER_LABEL` holds a server's UUID, and `settings.PROMETHEUS_NODE_LABEL` a compute
    node's host name, or its fully qualified name. One instant query answers a reading for all resources.
    """

    name = "prometheus"

    def read(self, reading: Reading) -> Mapping[str, float]:
        series, label = series_of(reading.metric), label_of(reading.metric)
        found = values(query(expression(reading, series, label)), label)
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
