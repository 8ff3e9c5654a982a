"""A strategy that moves one server away from the node with the highest load."""

from collections.abc import Mapping
from statistics import fmean, pstdev
from typing import Any

from audits.strategies import schemas
from audits.strategies.base import Solution, Strategy
from audits.strategies.placement import Place, Placement, enabled
from cluster.datasources.base import Reading
from cluster.snapshot import ClusterSnapshot, ServerSnapshot

CPU, MEMORY = "instance_cpu_usage", "instance_ram_usage"


class WorkloadBalance(Strategy):
    """Move one server from a node above the threshold.

    The load of a node is the use of its servers as a share of its vcpus or its memory.
    """

    name = "workload_balance"
    display_name = "Workload Balance Migration Strategy"
    goal = "workload_balancing"
    planner = "workload_stabilization"
    distinguished_by = ("metrics",)
    metrics = (CPU,)
    schema = {
        "type": "object",
        "properties": {
            "metrics": {
                "description": "The metric for the load of a node.",
                "type": "string",
                "enum": [CPU, MEMORY],
                "default": CPU,
            },
            "threshold": {
                "description": "The load of a node from which a server is moved away, in percent.",
                "type": "number",
                "minimum": 0,
                "default": 25.0,
            },
            "period": schemas.period(300),
            "granularity": schemas.granularity(300),
        },
    }

    def readings(self, parameters: Mapping[str, Any]) -> Mapping[str, Reading]:
        return {"use": Reading(parameters["metrics"], parameters["period"], granularity=parameters["granularity"])}

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        return Balance(cluster, parameters["metrics"], parameters["threshold"] / 100).solve()


class Balance:
    """The enabled nodes with their loads, as shares from 0 to 1."""

    def __init__(self, cluster: ClusterSnapshot, metric: str, threshold: float) -> None:
        self.cluster, self.metric, self.threshold = cluster, metric, threshold
        self.placement = Placement(cluster)
        self.places = enabled(self.placement.places.values())
        self.loads = {place.hostname: self.load_of(place) for place in self.places}

    def use(self, server: ServerSnapshot) -> float:
        """Return the use of a server, in vcpus or MB, or 0 if it is unknown."""
        value = self.cluster.of_server("use", server) or 0
        return value * server.vcpus / 100 if self.metric == CPU else value

    def capacity(self, place: Place) -> float:
        return max(place.node.vcpus if self.metric == CPU else place.node.memory, 1)

    def load_of(self, place: Place) -> float:
        servers = [*place.servers.values(), *place.node.arriving]
        return sum(map(self.use, servers)) / self.capacity(place)

    def solve(self) -> Solution:
        solution = Solution()
        before = self.deviation()
        move = self.find_move()
        if move:
            server, source, target = move
            solution.migrate(server, "live", source.hostname, target.hostname)
            self.loads[source.hostname] -= self.use(server) / self.capacity(source)
            self.loads[target.hostname] += self.use(server) / self.capacity(target)
        solution.indicators = {
            "instance_migrations_count": len(solution.actions),
            "instances_count": len(self.cluster.servers),
            "standard_deviation_before_audit": before,
            "standard_deviation_after_audit": self.deviation(),
        }
        return solution

    def deviation(self) -> float:
        return pstdev(self.loads.values()) if self.loads else 0.0

    def find_move(self) -> tuple[ServerSnapshot, Place, Place] | None:
        """Return the first possible move from the node with the highest load that has any, or None."""
        mean = fmean(self.loads.values()) if self.loads else 0.0
        sources = [place for place in self.places if self.loads[place.hostname] >= self.threshold]
        for source in sorted(sources, key=lambda place: (-self.loads[place.hostname], place.hostname)):
            surplus = (self.loads[source.hostname] - mean) * self.capacity(source)
            servers = [
                server
                for server in self.placement.movable(source, only_active=True)
                if 0 < self.use(server) <= surplus
            ]
            for server in sorted(servers, key=self.use, reverse=True):
                target = self.find_target(server, source)
                if target:
                    return server, source, target
        return None

    def find_target(self, server: ServerSnapshot, source: Place) -> Place | None:
        """Return the node with the lowest load that has enough capacity and remains below the threshold."""
        candidates = [
            place
            for place in self.places
            if place is not source
            and self.loads[place.hostname] + self.use(server) / self.capacity(place) < self.threshold
            and place.fits(server)
        ]
        return min(candidates, key=lambda place: (self.loads[place.hostname], place.hostname), default=None)
