"""A day of traces in the tables: the cloud at its beginning, and every sample of the day."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from django.db import connection
from django.utils import timezone

from cluster.datasources import loading
from cluster.models import ComputeNode, HostAggregate, Sample, Server
from cluster.topology.loading import load_topology
from cluster.topology.planetlab import METRIC, STEP, STEPS, Trace, make_topology, read_traces


class Day:
    """The traces of a file, with their cloud. The whole day is in the past."""

    def __init__(self, path: Path, memory_factor: float = 1, vcpu_ratio: float | None = None) -> None:
        self.traces: dict[UUID, Trace] = {}
        self.cloud = make_topology(traces := read_traces(path))
        for node in self.cloud["compute_nodes"]:
            node["memory"] = round(node["memory"] * memory_factor)
            node["vcpu_ratio"] = vcpu_ratio or node["vcpu_ratio"]
        self.begin = timezone.now() - timedelta(days=2)
        self.load(traces)
        self.tables = {
            node.hostname: aggregate.metadata["power"]
            for aggregate in HostAggregate.objects.all()
            for node in aggregate.nodes.all()
        }
        self.capacity = {node["hostname"]: float(node["vcpus"]) for node in self.cloud["compute_nodes"]}
        self.sizes = {server.uuid: server.vcpus for server in Server.objects.all()}

    def load(self, traces: Sequence[Trace]) -> None:
        load_topology(self.cloud)
        uuids = dict(Server.objects.values_list("name", "uuid"))
        self.traces = {uuids[trace.name]: trace for trace in traces}
        loading.insert_samples(self.samples())
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")

    def samples(self) -> Iterator[Sample]:
        for step in range(STEPS):
            for uuid, trace in self.traces.items():
                yield Sample(metric=METRIC, resource=uuid, time=self.time(step), value=trace.values[step])

    def time(self, step: int) -> datetime:
        return self.begin + step * STEP

    def rewind(self) -> None:
        """Restore the first node of every server, and switch on and enable all nodes."""
        ComputeNode.objects.update(
            status=ComputeNode.Status.ENABLED, disabled_reason=None, power_state=ComputeNode.PowerState.ON
        )
        load_topology(self.cloud)

    def demand(self, step: int) -> Mapping[str, float]:
        """Return the vcpus that the current servers of each host request in the interval that ends with a step."""
        demand: defaultdict[str, float] = defaultdict(float)
        for uuid, hostname in Server.objects.values_list("uuid", "node__hostname"):
            demand[hostname] += self.sizes[uuid] * self.traces[uuid].values[step] / 100
        return demand

    def idle_hosts(self) -> list[str]:
        """Return the hosts that are switched on."""
        on = ComputeNode.objects.filter(power_state=ComputeNode.PowerState.ON)
        return list(on.values_list("hostname", flat=True))
