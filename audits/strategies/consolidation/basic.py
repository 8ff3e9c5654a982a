"""A strategy that empties the nodes with the lowest loads, and moves their servers to nodes with high loads."""

from collections.abc import Mapping
from functools import partial
from operator import attrgetter
from typing import Any

from audits.strategies import schemas
from audits.strategies.base import EMPTIED, Solution, Strategy
from audits.strategies.placement import FirstFit, Place, Placement, enabled, smallest
from cluster.datasources.base import Reading
from cluster.snapshot import ClusterSnapshot, ServerSnapshot

Move = tuple[ServerSnapshot, Place]


class BasicConsolidation(Strategy):
    """Empty the least loaded nodes, each of them entirely or not at all.

    Watcher also moves some servers of nodes that stay in use (docs/compatibility.md, "Strategies"). The load of a
    server without a reading is 100 %, and that of a node without a reading is the sum of its servers.
    """

    name = "basic"
    display_name = "Basic offline consolidation"
    goal = "server_consolidation"
    metrics = ("instance_cpu_usage",)
    schema = {
        "type": "object",
        "properties": {
            "migration_attempts": {
                "description": "The number of consecutive failures to empty a node that ends the run. 0 is no limit.",
                "type": "number",
                "minimum": 0,
                "default": 0,
            },
            "period": schemas.period(7200),
            "granularity": schemas.granularity(300),
            "aggregation_method": schemas.aggregation_method(),
        },
    }

    def readings(self, parameters: Mapping[str, Any]) -> Mapping[str, Reading]:
        method, period = parameters["aggregation_method"], parameters["period"]
        granularity = parameters["granularity"]
        return {
            "instance_cpu_usage": Reading("instance_cpu_usage", period, method["instance"], granularity),
            "host_cpu_usage": Reading(
                "host_cpu_usage", period, schemas.node_value(method), granularity, required=False
            ),
        }

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        return Consolidation(cluster, parameters["migration_attempts"]).solve()


class Consolidation:
    """The state of one run: the nodes, highest score first, and the moves so far."""

    def __init__(self, cluster: ClusterSnapshot, attempts: float) -> None:
        self.cluster, self.attempts = cluster, attempts
        self.placement = Placement(cluster)
        places = self.placement.places.values()
        self.scored = sorted(
            (place for place in places if place.servers), key=lambda place: (-self.score(place), place.hostname)
        )
        self.targets = FirstFit(enabled(self.scored), attrgetter("free"), smallest(cluster.servers))
        self.receivers: set[str] = set()
        self.solution = Solution()
        self.released = self.migrations = 0

    def solve(self) -> Solution:
        failures = 0
        for place in reversed(self.scored):
            if place.hostname in self.receivers:
                continue
            moves = self.find_moves(place)
            failures = 0 if moves else failures + 1
            self.add_migrations(place, moves)
            if self.attempts and failures >= self.attempts:
                break
        self.solution.indicators = {
            "compute_nodes_count": len(enabled(self.placement.places.values())),
            "released_compute_nodes_count": self.released,
            "instance_migrations_count": self.migrations,
        }
        return self.solution

    def score(self, place: Place) -> float:
        """Return a third of the used share of a node's processor. Memory and disk have no weight, as in Watcher."""
        percent = self.cluster.of_node("host_cpu_usage", place.node)
        if percent is None:
            percent = sum(self.load(server) for server in place.servers.values()) / max(place.node.vcpus, 1)
        return percent / 100 / 3

    def load(self, server: ServerSnapshot) -> float:
        percent = self.cluster.of_server("instance_cpu_usage", server)
        return (100 if percent is None else percent) * server.vcpus

    def find_moves(self, source: Place) -> list[Move]:
        """Move all servers of a node, and return the moves, or an empty list if a server has no target."""
        servers = sorted(self.placement.movable(source, only_active=True), key=self.load, reverse=True)
        if not servers or len(servers) < len(source.servers) or source.node.arriving:
            return []
        moves: list[Move] = []
        # A disabled node is not a target, and its servers may move to all targets.
        before = self.targets.positions.get(source.hostname)
        for server in servers:
            amounts = (server.vcpus, server.memory, server.disk)
            target = self.targets.find(amounts, partial(Place.admits, server=server), before)
            if target is None:
                self.undo(source, moves)
                return []
            self.placement.move(server, source, target)
            self.targets.refresh(target)
            moves.append((server, target))
        return moves

    def undo(self, source: Place, moves: list[Move]) -> None:
        for server, target in moves:
            self.placement.move(server, target, source)
            self.targets.refresh(target)

    def add_migrations(self, source: Place, moves: list[Move]) -> None:
        for server, target in moves:
            self.solution.migrate(server, "live", source.hostname, target.hostname)
            self.receivers.add(target.hostname)
        if moves:
            self.migrations += len(moves)
            self.released += 1
            if source.node.is_enabled:
                self.solution.disable(source.node, EMPTIED)
