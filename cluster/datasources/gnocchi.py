"""The data source Gnocchi, with the metrics of Ceilometer (docs/metrics.md, "Gnocchi")."""

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import orjson
import requests
from django.conf import settings

from cluster.datasources.base import METRICS, Reading
from cluster.datasources.http import shared_by_vcpus, with_short_names
from cluster.datasources.keystone import KeystoneDatasource

SERVER_CPU, AIRFLOW = "cpu", "hardware.ipmi.node.airflow"
NAMES = {
    "host_cpu_usage": "compute.node.cpu.percent",
    "host_ram_usage": "hardware.memory.used",
    "host_outlet_temp": "hardware.ipmi.node.outlet_temperature",
    "host_inlet_temp": "hardware.ipmi.node.temperature",
    "host_airflow": AIRFLOW,
    "host_power": "hardware.ipmi.node.power",
    "instance_cpu_usage": SERVER_CPU,
    "instance_ram_usage": "memory.resident",
    "instance_ram_allocated": "memory",
    "instance_root_disk_size": "disk.root.size",
    "instance_l3_cache_usage": "cpu_l3_cache",
}
# The types of resources that hold metrics of servers and of compute nodes.
SERVER_TYPES, NODE_TYPES = ["instance"], ["nova_compute", "host", "ipmi"]
NANOSECONDS = 1e9
# Sensors report airflow in tenths.
AIRFLOW_UNIT = 10
NOT_FOUND = 404
# The age in seconds up to which a sample is current. Ceilometer may poll every 600 seconds.
CURRENT = 900
GROUP = "original_resource_id"


@dataclass(frozen=True)
class Point:
    """A value that Gnocchi aggregated over ``granularity`` seconds from the Unix time ``begin``."""

    begin: float
    granularity: float
    value: float

    def seconds_within(self, begin: float, end: float) -> float:
        return min(self.begin + self.granularity, end) - max(self.begin, begin)


class Gnocchi(KeystoneDatasource):
    """The data source Gnocchi. `settings.GNOCCHI_METRICS` overrides the names of metrics in `NAMES`.

    One search with aggregates returns a reading for all resources. Ceilometer's archive policies store only means, so
    a reading aggregates the means of its granularity.
    """

    name = "gnocchi"
    service_type = "metric"

    def read(self, reading: Reading) -> Mapping[str, float]:
        end = time.time() - reading.ago
        begin = end - reading.period
        name = name_of(reading.metric)
        values = {}
        for resource, metrics in self.query([reading.metric], begin, end, reading.granularity).items():
            points = [point for point in metrics.get(name, []) if point.seconds_within(begin, end) > 0]
            if name == SERVER_CPU:
                # The rate is negative when a counter restarts, as after a migration.
                points = [point for point in points if point.value >= 0]
            if points:
                values[resource] = aggregate(reading.aggregate, points, begin, end) * unit_of(name, reading.aggregate)
        if reading.metric.startswith("host_"):
            return with_short_names({node_of(resource): value for resource, value in values.items()})
        return shared_by_vcpus(values) if name == SERVER_CPU and reading.aggregate != "count" else values

    def find_metrics(self) -> set[str]:
        end = time.time()
        names = set()
        for prefix in ("host_", "instance_"):
            metrics = [metric for metric in METRICS if metric.startswith(prefix)]
            response = self.query(metrics, end - CURRENT, end, Reading.granularity)
            present = {name for series in response.values() for name, points in series.items() if points}
            names |= {metric for metric in metrics if name_of(metric) in present}
        return names

    def query(
        self, metrics: list[str], begin: float, end: float, granularity: float
    ) -> dict[str, dict[str, list[Point]]]:
        """Return the points of metrics, all of servers or all of compute nodes, by resource and name.

        Raises:
            DatasourceError: Gnocchi did not respond, refused the query, or the response is unusable.
        """
        types = NODE_TYPES if metrics[0].startswith("host_") else SERVER_TYPES
        arguments = {
            "params": {
                "start": begin,
                "stop": end,
                "granularity": granularity,
                "groupby": GROUP,
                "fill": "dropna",
            },
            "json": {
                "resource_type": "generic",
                "search": {"and": [{"=": {"ended_at": None}}, {"in": {"type": types}}]},
                "operations": ["metric", *([name_of(metric), method_of(metric)] for metric in metrics)],
            },
        }
        status, body = self.request(partial(self.send, arguments))
        reason = ""
        try:
            response = orjson.loads(body)
            if status < 300 and isinstance(response, list):
                return {group["group"][GROUP]: points_of(group["measures"]["measures"].values()) for group in response}
            description = response["description"]
            if status == NOT_FOUND and isinstance(description, str):
                # No resource has the metric. Other reasons of this status are objects.
                return {}
            reason = reason_of(description)
        except (ValueError, KeyError, TypeError, AttributeError):
            pass  # The error then contains only the status.
        raise self.refusal(status, reason)

    def send(self, arguments: dict[str, Any]) -> requests.Response:
        return self.send_authenticated("POST", "/v1/aggregates", **arguments)


def name_of(metric: str) -> str:
    name: str = settings.GNOCCHI_METRICS.get(metric, NAMES[metric])
    return name


def method_of(metric: str) -> str:
    return "rate:mean" if name_of(metric) == SERVER_CPU else "mean"


def unit_of(name: str, aggregate: str) -> float:
    """Return the factor from Gnocchi's unit to that of the metric; for processor use, percent of one vCPU."""
    if aggregate == "count":
        return 1
    if name == SERVER_CPU:
        return 100 / (settings.GNOCCHI_POLLING_INTERVAL * NANOSECONDS)
    return AIRFLOW_UNIT if name == AIRFLOW else 1


def node_of(resource: str) -> str:
    """Return the name of a compute node from Ceilometer's ``host_hypervisor``."""
    host, _, hypervisor = resource.partition("_")
    return host if host.partition(".")[0] == hypervisor.partition(".")[0] else resource


def aggregate(function: str, points: list[Point], begin: float, end: float) -> float:
    """Aggregate the points of a period. A mean is weighted by the time of each point within the period."""
    if function == "count":
        return len(points)
    if function == "mean":
        shares = [point.seconds_within(begin, end) for point in points]
        return sum(point.value * share for point, share in zip(points, shares, strict=True)) / sum(shares)
    return (min if function == "min" else max)(point.value for point in points)


def points_of(resources: Iterable[dict[str, Any]]) -> dict[str, list[Point]]:
    """Return the points by metric. Raises: `KeyError`, `TypeError` and others for an unexpected format."""
    return {
        name: [
            Point(datetime.fromisoformat(begin).timestamp(), float(granularity), float(value))
            for points in methods.values()
            for begin, granularity, value in points
            if math.isfinite(float(value))
        ]
        for metrics in resources
        for name, methods in metrics.items()
    }


def reason_of(description: Any) -> str:
    """Return the reason of a refusal, which is a text or an object with causes."""
    if isinstance(description, str):
        return description
    detail = orjson.dumps(description["detail"]).decode()
    return ": ".join([*(str(description[key]) for key in ("cause", "reason") if key in description), detail])
