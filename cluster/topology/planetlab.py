"""A cloud with PlanetLab traces: 800 hosts of two types, and a server for each trace of processor use.

The set-up is that of Beloglazov and Buyya, "Optimal online deterministic algorithms and adaptive heuristics for energy
and performance efficient dynamic consolidation of virtual machines in cloud data centers" (2012).
"""

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils import timezone

from cluster.datasources import loading
from cluster.models import Sample, Server
from cluster.topology.loading import load_topology
from watcher_site.refusals import Invalid

STEP = timedelta(minutes=5)
STEPS = 288
HOSTS = 800
# The longest default period of metrics of a strategy, in steps.
HISTORY = 24
# The MIPS of one vCPU, a common divisor of the speeds of all processors, because vCPUs have no speed.
MIPS = 20
# Overcommitment of vCPUs as in the paper, where memory is the limit.
VCPU_RATIO = 4.0
HOST_MEMORY, HOST_DISK, SERVER_DISK = 4096, 1000, 3
METRIC = "instance_cpu_usage"


@dataclass(frozen=True)
class HostType:
    """A type of hosts; ``power`` is in W, at 0, 10, …, 100 % load."""

    id: int
    name: str
    mips: int
    power: Sequence[float]


@dataclass(frozen=True)
class Flavor:
    name: str
    mips: int
    memory: int


HOST_TYPES = (
    HostType(2011_04, "HP ProLiant ML110 G4", 2 * 1860, (86, 89.4, 92.6, 96, 99.5, 102, 106, 108, 112, 114, 117)),
    HostType(2011_05, "HP ProLiant ML110 G5", 2 * 2660, (93.7, 97, 101, 105, 110, 116, 121, 125, 129, 133, 135)),
)
FLAVORS = (
    Flavor("high-CPU medium", 2500, 870),
    Flavor("extra large", 2000, 1740),
    Flavor("small", 1000, 1740),
    Flavor("micro", 500, 613),
)


@dataclass(frozen=True)
class Trace:
    """The processor use of a server in percent, one value for each step."""

    name: str
    values: Sequence[int]


def read_traces(path: Path) -> list[Trace]:
    """Read the traces of a day from a gzipped CSV file with a header and one row for each machine.

    Raises:
        Invalid: the file cannot be read or is invalid; the message begins with the file and the line.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            return list(parse_traces(path, csv.reader(file)))
    except (gzip.BadGzipFile, EOFError, ValueError, zlib.error, csv.Error) as problem:
        raise Invalid(f"{path}: is not a gzipped CSV file: {problem}.") from problem
    except OSError as problem:
        raise Invalid(f"{path}: cannot be read: {problem.strerror}.") from problem


def parse_traces(path: Path, rows: Iterator[list[str]]) -> Iterator[Trace]:
    if next(rows, []) != ["vm", *(f"t{step:03}" for step in range(STEPS))]:
        raise Invalid(f"{path}:1: the head must be vm,t000,...,t{STEPS - 1}.")
    names: set[str] = set()
    for number, (name, *cells) in enumerate(filter(None, rows), 2):
        if not name or len(name) > 255 or name in names:
            raise Invalid(f"{path}:{number}: vm: must be a name that no other row has.")
        names.add(name)
        if len(cells) != STEPS or not all(cell.isascii() and cell.isdigit() and int(cell) <= 100 for cell in cells):
            raise Invalid(f"{path}:{number}: there must be {STEPS} whole percentages from 0 to 100.")
        yield Trace(name, [int(cell) for cell in cells])
    if not names:
        raise Invalid(f"{path}:2: there must be a row.")


def make_topology(traces: Sequence[Trace]) -> dict[str, Any]:
    """Return the cloud as a topology, with servers assigned to hosts in turn, by free MIPS and memory.

    Raises:
        Invalid: the hosts do not have enough capacity.
    """
    hosts = [f"planetlab-{number:03}" for number in range(HOSTS)]
    types = [HOST_TYPES[number % 2] for number in range(HOSTS)]
    free = {host: [kind.mips, HOST_MEMORY] for host, kind in zip(hosts, types, strict=True)}
    turn, servers = cycle(hosts), []
    for position, trace in enumerate(traces):
        flavor = FLAVORS[position % len(FLAVORS)]
        host = next((name for name, _ in zip(turn, hosts, strict=False) if has_capacity(free[name], flavor)), None)
        if host is None:
            raise Invalid(f"{HOSTS} hosts do not have the capacity for {len(traces)} servers.")
        free[host] = [free[host][0] - flavor.mips, free[host][1] - flavor.memory]
        servers.append({"name": trace.name, "node": host, "flavor": flavor.name, **size_of_flavor(flavor)})
    return {
        "compute_nodes": [
            {
                "hostname": host,
                "vcpus": kind.mips // MIPS,
                "vcpu_ratio": VCPU_RATIO,
                "memory": HOST_MEMORY,
                "disk": HOST_DISK,
            }
            for host, kind in zip(hosts, types, strict=True)
        ],
        "host_aggregates": [
            {
                "id": kind.id,
                "name": kind.name,
                "metadata": {"power": list(kind.power)},
                "compute_nodes": hosts[number::2],
            }
            for number, kind in enumerate(HOST_TYPES)
        ],
        "flavors": [{"name": flavor.name, "id": flavor.name, **size_of_flavor(flavor)} for flavor in FLAVORS],
        "servers": servers,
    }


def keep_placements(cloud: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the topology without the nodes of servers that are on a node already."""
    placed = Server.objects.present().exclude(node=None).filter(name__in=names)
    placed_names = set(placed.values_list("name", flat=True))
    servers = [
        {name: value for name, value in server.items() if name != "node" or server["name"] not in placed_names}
        for server in cloud["servers"]
    ]
    return {**cloud, "servers": servers}


def has_capacity(free: Sequence[int], flavor: Flavor) -> bool:
    return free[0] >= flavor.mips and free[1] >= flavor.memory


def size_of_flavor(flavor: Flavor) -> dict[str, int]:
    return {"vcpus": flavor.mips // MIPS, "memory": flavor.memory, "disk": SERVER_DISK}


@transaction.atomic
def load_planetlab(path: Path, step: int, now: datetime | None = None) -> tuple[int, int]:
    """Load servers from traces, with samples of the two hours before a step of the day, moved to the present.

    Servers that exist stay on their nodes, so that a later step shows the effect of an executed plan.

    Returns:
        The number of servers and the number of samples.

    Raises:
        Invalid: the file is invalid.
        InvalidValue: it conflicts with the tables.
    """
    traces = read_traces(path)
    names = [trace.name for trace in traces]
    load_topology(keep_placements(make_topology(traces), names))
    end = now or timezone.now()
    uuids = dict(Server.objects.present().filter(name__in=names).values_list("name", "uuid"))
    # Replace the samples of an earlier load.
    Sample.objects.filter(metric=METRIC, resource__in=uuids.values()).delete()
    samples = (
        Sample(metric=METRIC, resource=uuids[trace.name], time=end - (step - past) * STEP, value=trace.values[past])
        for trace in traces
        for past in range(max(step - HISTORY + 1, 0), step + 1)
    )
    return len(traces), loading.insert_samples(samples)
