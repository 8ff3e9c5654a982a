"""Free capacity of the nodes of a cloud in memory, the scheduler's choice among them, and the quotas of projects."""

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable

from cluster.drivers.base import OperationRefused, load_driver
from cluster.drivers.quotas import QuotaExceeded, check_limits, demand_of, limits_of
from cluster.drivers.scheduler import UNITS, NodeCapacity, free_of
from cluster.models import ComputeNode, ProjectQuota, Server


class CapacityIndex:
    """The servers by node, each also where it is on its way to, and what they leave free.

    The nodes stand in the order in which the scheduler likes them: the one with the most memory free first, and else
    the one that has been known for longer. So one look mostly finds the best of thousands.
    """

    def __init__(self, nodes: Iterable[ComputeNode], servers: Iterable[Server]) -> None:
        self.by_node = {node.pk: NodeCapacity(node, free_of(node, {})) for node in nodes}
        self.totals = {key: dict(candidate.free) for key, candidate in self.by_node.items()}
        self.by_host = {candidate.node.hostname: candidate for candidate in self.by_node.values()}
        self.servers: dict[int, set[Server]] = defaultdict(set)
        self.use: dict[int, Counter[str]] = defaultdict(Counter)
        for server in servers:
            self.put(server)
        self.order = sorted(map(rank, self.by_node.values()))

    def named(self, hostname: str) -> list[NodeCapacity]:
        return [self.by_host[hostname]] if hostname in self.by_host else []

    def find_best(self, server: Server, zone: str | None = None) -> list[NodeCapacity]:
        """Return the one, of a zone or of any, that the scheduler would choose for a server, if there is any."""
        for memory, key in self.order:
            candidate = self.by_node[key]
            if -memory < server.memory and server.memory:
                break
            is_open = candidate.node.status == ComputeNode.Status.ENABLED and zone in {None, candidate.node.zone}
            if is_open and candidate.accepts(server):
                return [candidate]
        return []

    def put(self, server: Server) -> None:
        for key in places(server):
            self.servers[key].add(server)
            self.count(key, server, 1)

    def take(self, server: Server) -> None:
        for key in places(server):
            self.servers[key].discard(server)
            self.count(key, server, -1)

    def count(self, key: int, server: Server, sign: int) -> None:
        """Count whole numbers, from which what is free follows: sums of fractions would drift."""
        use, candidate = self.use[key], self.by_node.get(key)
        for resource in UNITS:
            use[resource] += sign * server.taken(resource)
            if candidate:
                candidate.free[resource] = self.totals[key][resource] - use[resource]

    def move(self, server: Server, **changes: object) -> None:
        """Change a server's place or its size, and what is free with it."""
        touched = [*places(server), *(node.pk for node in changes.values() if isinstance(node, ComputeNode))]
        affected = [self.by_node[key] for key in set(touched) if key in self.by_node]
        for candidate in affected:
            del self.order[bisect_left(self.order, rank(candidate))]
        self.take(server)
        for name, value in changes.items():
            setattr(server, name, value)
        self.put(server)
        for candidate in affected:
            insort(self.order, rank(candidate))


def rank(candidate: NodeCapacity) -> tuple[float, int]:
    return -candidate.free["memory"], candidate.node.pk


def places(server: Server) -> list[int]:
    return [key for key in (server.node_id, server.destination_id) if key is not None]


class ForeseenQuotas:
    """The limits of all projects, read in one query when the first server is to be created in any of them."""

    def __init__(self) -> None:
        self.quotas: dict[str, ProjectQuota] | None = None

    def require(self, project: str, wanted: Server, servers: Iterable[Server]) -> None:
        """Check that a project, which has these servers among others, may have one more.

        Raises:
            OperationRefused: its quota does not allow it.
        """
        if not project or load_driver().is_mirrored:
            return
        if self.quotas is None:
            self.quotas = {quota.project_id: quota for quota in ProjectQuota.objects.all()}
        limits = limits_of(self.quotas.get(project) or ProjectQuota(project_id=project))
        demand = {name: number for name, number in demand_of(wanted.vcpus, wanted.memory).items() if limits[name] >= 0}
        if not demand:
            return
        usage: Counter[str] = Counter()
        for server in servers:
            if server.project_id == project:
                usage.update(demand_of(server.vcpus, server.memory))
        try:
            check_limits(project, {name: number for name, number in demand.items() if number}, usage, limits)
        except QuotaExceeded as problem:
            raise OperationRefused(str(problem)) from problem
