"""Prometheus, Aetos and Gnocchi of the emulator: the same samples in the wire format of each.

A query of Prometheus is not evaluated: the function in its text is applied to the samples of the metric of its series.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import mean
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from werkzeug import Request, Response
from werkzeug.exceptions import MethodNotAllowed
from werkzeug.routing import Rule

if TYPE_CHECKING:
    from tests.cluster.emulator.server import Emulator

SERIES = {
    "node_cpu_seconds_total": "host_cpu_usage",
    "node_memory_MemAvailable_bytes": "host_ram_usage",
    "ceilometer_cpu": "instance_cpu_usage",
    "ceilometer_memory_usage": "instance_ram_usage",
}
GNOCCHI = {
    "compute.node.cpu.percent": "host_cpu_usage",
    "hardware.memory.used": "host_ram_usage",
    "hardware.ipmi.node.outlet_temperature": "host_outlet_temp",
    "hardware.ipmi.node.temperature": "host_inlet_temp",
    "hardware.ipmi.node.airflow": "host_airflow",
    "hardware.ipmi.node.power": "host_power",
    "cpu": "instance_cpu_usage",
    "memory.resident": "instance_ram_usage",
    "memory": "instance_ram_allocated",
    "disk.root.size": "instance_root_disk_size",
    "cpu_l3_cache": "instance_l3_cache_usage",
}
# The only granularity of Ceilometer's archive policies, in seconds.
GRANULARITY = 300
FUNCTIONS: Mapping[str, Callable[[list[float]], float]] = {"avg": mean, "min": min, "max": max, "count": len}


@dataclass
class Telemetry:
    """The samples of each resource by metric, in its unit, one per `GRANULARITY`, the last before ``now``.

    ``vcpus`` is the number of VCPUs of each server. ``recorded`` is sent instead of a computed response, if given.
    """

    emulator: "Emulator"
    now: float = 0
    samples: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    vcpus: int = 1
    recorded: Any = None

    # Aetos requires a token.
    is_open = False

    def rules(self) -> list[Rule]:
        return [
            Rule("/prometheus/api/v1/query", endpoint=self.answer_aetos),
            Rule("/metric/v1/aggregates", methods=["POST"], endpoint=self.answer_gnocchi),
        ]

    def answer_aetos(self, request: Request) -> Any:
        if request.method != "GET":
            raise MethodNotAllowed
        return self.answer_query(request.args["query"])

    def answer_query(self, query: str) -> Any:
        vector = self.names() if "__name__" in query else self.vector(query)
        return self.recorded or {"status": "success", "data": {"resultType": "vector", "result": vector}}

    def names(self) -> list[dict[str, Any]]:
        of_metrics = {metric: series for series, metric in SERIES.items()}
        return [sample(self.now, {"__name__": of_metrics.get(metric, metric)}, 1) for metric in self.samples]

    def vector(self, query: str) -> list[dict[str, Any]]:
        [series, label] = re.findall(r"(\w+)\{(?:mode=\"idle\",)?(\w+)!=", query)[-1]
        metric = SERIES.get(series, series)
        function = (re.findall(r"(avg|min|max|count)_over_time", query) or ["avg"])[-1]
        factor = self.vcpus if metric == "instance_cpu_usage" and function != "count" else 1
        return [
            sample(self.now, {label: resource}, FUNCTIONS[function](values) * factor)
            for resource, values in self.samples.get(metric, {}).items()
        ]

    def answer_gnocchi(self, request: Request) -> Any:
        body, start, stop = request.get_json(), float(request.args["start"]), float(request.args["stop"])
        if self.recorded:
            return self.recorded
        wanted = {name: GNOCCHI[name] for name, _ in body["operations"][1:]}
        if float(request.args["granularity"]) != GRANULARITY:
            cause = {"cause": "Metrics cannot be aggregated", "reason": "Granularities are missing", "detail": []}
            return gnocchi_error(400, "Bad Request", cause)
        if not any(self.samples.get(metric) for metric in wanted.values()):
            return gnocchi_error(404, "Not Found", f"Metric {sorted(wanted)} does not exist")
        groups: dict[str, dict[str, Any]] = {}
        for name, method in body["operations"][1:]:
            for resource, values in self.samples.get(wanted[name], {}).items():
                key = f"{resource}_{resource}" if name.startswith("compute.node") else resource
                points = self.points(name, values, start - start % GRANULARITY, stop)
                groups.setdefault(key, {})[name] = {method: points}
        return [
            {
                "group": {"original_resource_id": key},
                "measures": {"measures": {gnocchi_id(key): series}},
            }
            for key, series in groups.items()
        ]

    def points(self, name: str, values: list[float], start: float, stop: float) -> list[list[Any]]:
        """Return the points of a metric; points of ``cpu`` are nanoseconds between two samples."""
        factor = {"cpu": self.vcpus * GRANULARITY * 1e7, "hardware.ipmi.node.airflow": 0.1}.get(name, 1)
        first = self.now - self.now % GRANULARITY - len(values) * GRANULARITY
        times = [first + place * GRANULARITY for place in range(len(values))]
        return [
            [datetime.fromtimestamp(time, UTC).isoformat(), float(GRANULARITY), value * factor]
            for time, value in zip(times, values, strict=True)
            if start <= time < stop
        ]


@dataclass
class OpenPrometheus:
    """The Prometheus server behind Aetos, which accepts queries by POST without a token."""

    telemetry: Telemetry
    is_open = True

    def rules(self) -> list[Rule]:
        return [Rule("/open-prometheus/api/v1/query", methods=["POST"], endpoint=self.answer)]

    def answer(self, request: Request) -> Any:
        return self.telemetry.answer_query(request.form["query"])


def sample(now: float, labels: dict[str, str], value: float) -> dict[str, Any]:
    return {"metric": labels, "value": [now, str(value)]}


def gnocchi_id(original: str) -> str:
    """Return the ID that Gnocchi derives from the ID of a resource."""
    return str(uuid5(NAMESPACE_URL, original))


def gnocchi_error(status: int, title: str, description: Any) -> Response:
    body = {"code": status, "title": title, "description": description}
    return Response(json.dumps(body), status, content_type="application/json")
