"""The cloud of the demonstration: its topology, and samples of metrics that are generated up to the present time."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from math import pi, sin
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Max
from django.utils import timezone

from cluster.datasources.loading import insert_samples
from cluster.json_lines import parse_document
from cluster.models import ComputeNode, Sample, Server

TOPOLOGY = Path(__file__).with_name("demonstration_cloud.json")
# By default, strategies read at most the last two hours, and some of them only the last half minute.
REACH, KEPT = timedelta(hours=2, minutes=15), timedelta(hours=3)
STEP, FINE_STEP, FINE = timedelta(minutes=10), timedelta(seconds=20), timedelta(minutes=4)
STORED = "cluster.datasources.stored.StoredSamples"
KIB_PER_MB = 1024
# The outlet temperature of one compute node, so that strategies find a hot node.
HOT = 38.0


def read_topology() -> dict[str, Any]:
    document: dict[str, Any] = parse_document(TOPOLOGY.read_bytes())[1]
    return document


@cache
def own_uuids(collection: str) -> frozenset[UUID]:
    """Return the UUIDs of the demonstration's resources of a kind, such as ``servers``."""
    return frozenset(UUID(item["uuid"]) for item in read_topology()[collection])


def make_current() -> int:
    """Create the missing samples up to now, and return their number; 0 if the cloud is not the demonstration.

    Samples older than `KEPT` are deleted. Repeated and concurrent calls are safe, because the value of a sample only
    depends on its resource, its metric and its time.
    """
    if settings.DATASOURCE != STORED or not settings.DEMO:
        return 0
    nodes = list(ComputeNode.objects.present().filter(uuid__in=own_uuids("compute_nodes")))
    if not nodes:
        return 0
    servers = list(Server.objects.present().filter(node__in=nodes))
    now = timezone.now()
    resources = [node.uuid for node in nodes]
    newest = Sample.objects.filter(metric="host_cpu_usage", resource__in=resources).aggregate(at=Max("time"))["at"]
    number = insert_samples(
        Sample(metric=metric, resource=resource, time=time, value=value)
        for time in sample_times(max(filter(None, [newest, now - REACH])), now)
        for metric, resource, value in metric_values(nodes, servers, time)
    )
    # Deleted servers have samples, too.
    measured = {*resources, *(server.uuid for server in servers), *own_uuids("servers")}
    Sample.objects.filter(time__lt=now - KEPT, resource__in=measured).delete()
    return number


def sample_times(after: datetime, now: datetime) -> Iterator[datetime]:
    """Yield the times of samples, which are the same in each process: every `STEP`, finally every `FINE_STEP`."""
    recent = max(after, now - FINE)
    yield from multiples(STEP, after, recent)
    yield from multiples(FINE_STEP, recent, now)


def multiples(step: timedelta, after: datetime, until: datetime) -> Iterator[datetime]:
    seconds = int(step.total_seconds())
    for number in range(int(after.timestamp()) // seconds + 1, int(until.timestamp()) // seconds + 1):
        yield datetime.fromtimestamp(number * seconds, UTC)


def metric_values(
    nodes: list[ComputeNode], servers: list[Server], time: datetime
) -> Iterator[tuple[str, UUID, float]]:
    """Yield the value of each metric of each resource at a time, in the metric's unit."""
    for server in servers:
        use = wave(server.uuid, time, 5, 70)
        yield "instance_cpu_usage", server.uuid, use
        yield "instance_ram_usage", server.uuid, server.memory * wave(server.uuid, time, 20, 80) / 100
        yield "instance_ram_allocated", server.uuid, server.memory
        yield "instance_root_disk_size", server.uuid, server.disk
        yield "instance_l3_cache_usage", server.uuid, wave(server.uuid, time, 1_000_000, 4_000_000)
    for number, node in enumerate(nodes):
        node_servers = [server for server in servers if server.node_id == node.pk]
        busy = sum(server.vcpus * wave(server.uuid, time, 5, 70) for server in node_servers)
        use = min(busy / node.vcpus, 100)
        used = sum(server.memory * wave(server.uuid, time, 20, 80) / 100 for server in node_servers)
        yield "host_cpu_usage", node.uuid, use
        yield "host_ram_usage", node.uuid, used * KIB_PER_MB
        yield "host_inlet_temp", node.uuid, wave(node.uuid, time, 20, 24)
        yield "host_outlet_temp", node.uuid, HOT if number == 0 else wave(node.uuid, time, 26, 33)
        yield "host_airflow", node.uuid, 300 + 1.5 * use
        yield "host_power", node.uuid, 120 + 2 * use


def wave(resource: UUID, time: datetime, minimum: float, maximum: float) -> float:
    """Return a value between two bounds that oscillates once an hour around a level specific to the resource."""
    level = resource.int % 997 / 997
    swing = sin(2 * pi * (time.timestamp() / 3600 + level))
    return minimum + (maximum - minimum) * (0.15 + 0.7 * level + 0.15 * swing)
