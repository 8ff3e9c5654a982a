"""Free capacity, scheduling and quotas of the simulated cloud."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable

from cluster.drivers.base import OperationRefused, load_driver
from cluster.drivers.messages import UNITS
from cluster.drivers.quotas import QuotaExceeded, check_limits, demand_of, limits_of
from cluster.drivers.scheduler import NodeCapacity, free_of
from cluster.models import ComputeNode, ProjectQuota, Server


class CapacityIndex:
    """The free capacity of nodes, and their servers, including those that are migrating to them.

    The nodes are sorted by the scheduler's preference: by free memory, then by key. The search for the best of
    thousands of nodes therefore mostly ends at the first one.
    """

    def __init__(self, nodes: Iterable[ComputeNode], servers: Iterable[Server]) -> None:
        self.by_node = {node.pk: NodeCapacity(node, free_of(node, {})) for node in nodes}
        self.totals = {key: dict(candidate.free) for key, candidate in self.by_node.items()}
        self.by_host = {candidate.node.hostname: candidate for candidate in self.by_node.values()}
        self.servers: dict[int, dict[int, Server]] = {key: {} for key in self.by_node}
        """The servers of each node by key."""
        self.use = {key: dict.fromkeys(UNITS, 0) for key in self.by_node}
        self.order = sorted((-candidate.free["memory"], key) for key, candidate in self.by_node.items())
        for server in servers:
            self.add(server)

    def named(self, hostname: str) -> list[NodeCapacity]:
        return [self.by_host[hostname]] if hostname in self.by_host else []

    def find_best(self, server: Server, zone: str | None = None) -> list[NodeCapacity]:
        """Return a list with the node that the scheduler would choose, in a zone or in any, or an empty list."""
        for memory, key in self.order:
            candidate = self.by_node[key]
            if -memory < server.memory and server.memory:
                break
            is_open = candidate.node.status == ComputeNode.Status.ENABLED and zone in {None, candidate.node.zone}
            if is_open and candidate.accepts(server):
                return [candidate]
        return []

    def move(self, server: Server, **changes: object) -> None:
        """Change the node or the size of a server, and the free capacity of the nodes concerned."""
        self.remove(server)
        for name, value in changes.items():
            setattr(server, name, value)
        self.add(server)

    def add(self, server: Server) -> None:
        for key in self.nodes_of(server):
            self.servers[key][server.pk] = server
            self.count(key, server, 1)

    def remove(self, server: Server) -> None:
        for key in self.nodes_of(server):
            self.servers[key].pop(server.pk, None)
            self.count(key, server, -1)

    def nodes_of(self, server: Server) -> list[int]:
        return [key for key in (server.node_id, server.destination_id) if key in self.by_node]

    def count(self, key: int, server: Server, sign: int) -> None:
        """Add or subtract the amounts of a server. Integers avoid accumulated rounding errors."""
        free, use, total = self.by_node[key].free, self.use[key], self.totals[key]
        del self.order[bisect_left(self.order, (-free["memory"], key))]
        for resource, amount in server.reserved.items():
            use[resource] += sign * amount
            free[resource] = total[resource] - use[resource]
        insort(self.order, (-free["memory"], key))


class SimulatedQuotas:
    """The quotas of all projects, loaded in one query by the first creation of a server."""

    def __init__(self) -> None:
        self.quotas: dict[str, ProjectQuota] | None = None

    def require(self, project: str, new_server: Server, servers: Iterable[Server]) -> None:
        """Check that a project may have another server.

        Args:
            servers: the servers of all projects.

        Raises:
            OperationRefused: its quota does not allow it.
        """
        if not project or load_driver().is_mirrored:
            return
        if self.quotas is None:
            self.quotas = {quota.project_id: quota for quota in ProjectQuota.objects.all()}
        limits = limits_of(self.quotas.get(project) or ProjectQuota(project_id=project))
        demand = demand_of(new_server.vcpus, new_server.memory)
        demand = {name: number for name, number in demand.items() if limits[name] >= 0}
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
