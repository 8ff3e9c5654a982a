"""A strategy that moves servers until the standard deviation of the loads of the nodes is below the thresholds."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from itertools import cycle, islice
from math import sqrt
from random import Random
from typing import Any

from audits.strategies import schemas
from audits.strategies.base import Solution, Strategy
from audits.strategies.placement import Place, Placement, enabled
from cluster.datasources.base import Reading
from cluster.snapshot import ClusterSnapshot, ServerSnapshot

CPU, MEMORY = "instance_cpu_usage", "instance_ram_usage"
METRICS = [CPU, MEMORY]
HOST_METRICS = {CPU: "host_cpu_usage", MEMORY: "host_ram_usage"}
KIB_IN_MB = 1024
SHARE = {"type": "number", "minimum": 0, "maximum": 1}
SECONDS = {"type": "integer", "minimum": 0}
# The seed is constant, so that the same arguments return the same solution.
SEED = 2015


def named_values_schema(schema: Mapping[str, Any], defaults: Mapping[str, Any], description: str) -> dict[str, Any]:
    """Return the schema of an object with a value for each name, with defaults."""
    properties = {name: {**schema, "default": default} for name, default in defaults.items()}
    return {"description": description, "type": "object", "properties": properties, "default": {}}


class WorkloadStabilization(Strategy):
    name = "workload_stabilization"
    display_name = "Workload stabilization"
    goal = "workload_balancing"
    planner = "workload_stabilization"
    distinguished_by = ("metrics",)
    metrics = (CPU,)
    schema = {
        "type": "object",
        "properties": {
            "metrics": {
                "description": "The metrics for the loads of nodes.",
                "type": "array",
                "items": {"type": "string", "enum": METRICS},
                "minItems": 1,
                "uniqueItems": True,
                "default": [CPU],
            },
            "thresholds": named_values_schema(
                SHARE, dict.fromkeys(METRICS, 0.1), "The standard deviations from which servers are moved."
            ),
            "weights": named_values_schema(
                SHARE, {f"{metric}_weight": 1.0 for metric in METRICS}, "The weights of the metrics."
            ),
            "instance_metrics": {
                "description": "The metric of nodes for each metric of servers. Each has one possible value.",
                "type": "object",
                "properties": {
                    metric: {"type": "string", "enum": [host], "default": host}
                    for metric, host in HOST_METRICS.items()
                },
                "default": {},
            },
            "host_choice": {
                "description": "The destinations to try: retry: random ones; cycle: in turn; fullsearch: all.",
                "type": "string",
                "enum": ["retry", "cycle", "fullsearch"],
                "default": "retry",
            },
            "retry_count": {
                "description": "The number of destinations to try for each server.",
                "type": "number",
                "minimum": 1,
                "default": 1,
            },
            "periods": named_values_schema(
                SECONDS,
                {"instance": 720, "compute_node": 600, "node": 0},
                "The periods from which samples are used, in seconds. node is deprecated and overrides compute_node.",
            ),
            "aggregation_method": schemas.aggregation_method(),
            "granularity": schemas.granularity(300),
        },
    }

    def readings(self, parameters: Mapping[str, Any]) -> Mapping[str, Reading]:
        periods, methods = parameters["periods"], parameters["aggregation_method"]
        granularity = parameters["granularity"]
        readings = {}
        for metric in parameters["metrics"]:
            host_metric = parameters["instance_metrics"][metric]
            readings[metric] = Reading(metric, periods["instance"], methods["instance"], granularity)
            readings[host_metric] = Reading(
                host_metric, schemas.node_value(periods), schemas.node_value(methods), granularity, required=False
            )
        return readings

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        return Stabilization(cluster, parameters).solve()


class Load:
    """The loads of the nodes in one metric, as shares from 0 to 1, and their deviation, updated incrementally."""

    def __init__(self, metric: str, host_metric: str, cluster: ClusterSnapshot, places: Iterable[Place]) -> None:
        self.metric, self.host_metric, self.cluster = metric, host_metric, cluster
        self.loads = {place.hostname: self.load_of(place) for place in places}
        self.count = max(len(self.loads), 1)
        self.total = sum(self.loads.values())
        self.squares = sum(load * load for load in self.loads.values())

    def load_of(self, place: Place) -> float:
        """Return the load that was measured on the node itself, or the sum of the shares of its servers."""
        measured = self.cluster.of_node(self.host_metric, place.node)
        if measured is not None:
            return measured / 100 if self.metric == CPU else measured / KIB_IN_MB / max(place.node.memory, 1)
        return sum(self.share(server, place) for server in [*place.servers.values(), *place.node.arriving])

    def share(self, server: ServerSnapshot, place: Place) -> float:
        """Return the share of a node that a server uses, or 0 if it is unknown."""
        value = self.cluster.of_server(self.metric, server) or 0
        if self.metric == CPU:
            return value * server.vcpus / 100 / max(place.node.vcpus, 1)
        return value / max(place.node.memory, 1)

    @property
    def deviation(self) -> float:
        return self.deviation_of(self.total, self.squares)

    def deviation_of(self, total: float, squares: float) -> float:
        return sqrt(max(squares / self.count - (total / self.count) ** 2, 0))

    def deviation_after(self, server: ServerSnapshot, source: Place, target: Place) -> float:
        share_on_source, share_on_target = self.share(server, source), self.share(server, target)
        source_load, target_load = self.loads[source.hostname], self.loads[target.hostname]
        squares = (
            self.squares
            - source_load**2
            - target_load**2
            + (source_load - share_on_source) ** 2
            + (target_load + share_on_target) ** 2
        )
        return self.deviation_of(self.total - share_on_source + share_on_target, squares)

    def move(self, server: ServerSnapshot, source: Place, target: Place) -> None:
        for place, change in ((source, -self.share(server, source)), (target, self.share(server, target))):
            load = self.loads[place.hostname]
            self.total, self.squares = self.total + change, self.squares - load**2 + (load + change) ** 2
            self.loads[place.hostname] = load + change


@dataclass(frozen=True)
class Move:
    deviation: float
    server: ServerSnapshot
    source: Place
    target: Place


class Stabilization:
    """The state of one run: the enabled nodes and their loads."""

    def __init__(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> None:
        self.cluster, self.parameters = cluster, parameters
        self.placement = Placement(cluster)
        self.places = enabled(self.placement.places.values())
        host_metrics = parameters["instance_metrics"]
        self.loads = [Load(name, host_metrics[name], cluster, self.places) for name in parameters["metrics"]]
        self.chance = Random(SEED)  # noqa: S311 (chance, no secret)
        self.next_places = cycle(self.places)
        self.promising = self.candidate_nodes()

    def solve(self) -> Solution:
        solution = Solution()
        before = self.weigh(load.deviation for load in self.loads)
        if any(load.deviation > self.parameters["thresholds"][load.metric] for load in self.loads):
            for move in sorted(self.find_moves(), key=lambda move: (move.deviation, str(move.server.uuid))):
                if self.try_move(move, solution) and self.is_balanced():
                    break
        solution.indicators = {
            "instance_migrations_count": len(solution.actions),
            "instances_count": len(self.cluster.servers),
            "standard_deviation_before_audit": before,
            "standard_deviation_after_audit": self.weigh(load.deviation for load in self.loads),
        }
        return solution

    def weigh(self, deviations: Iterable[float]) -> float:
        weights = self.parameters["weights"]
        return sum(
            weights[f"{load.metric}_weight"] * deviation
            for load, deviation in zip(self.loads, deviations, strict=True)
        )

    def is_balanced(self) -> bool:
        return any(load.deviation <= self.parameters["thresholds"][load.metric] for load in self.loads)

    def find_moves(self) -> list[Move]:
        """Return the best tried move of each server, if it reduces the deviation."""
        now = self.weigh(load.deviation for load in self.loads)
        moves = []
        for source in self.places:
            for server in self.placement.movable(source):
                if server.state in {"active", "paused"}:
                    tried = [self.simulate(server, source, target) for target in self.targets(source)]
                    best = min(tried, key=lambda move: move.deviation, default=None)
                    if best and best.deviation < now:
                        moves.append(best)
        return moves

    def targets(self, source: Place) -> Iterator[Place]:
        """Return the destinations to try for one server."""
        count = min(int(self.parameters["retry_count"]), len(self.places) - 1)
        choice = self.parameters["host_choice"]
        if choice == "fullsearch":
            return (place for place in self.promising if place is not source)
        if choice == "cycle":
            return islice((place for place in self.next_places if place is not source), count)
        sample = self.chance.sample(self.places, min(count + 1, len(self.places)))
        return islice((place for place in sample if place is not source), count)

    def candidate_nodes(self) -> list[Place]:
        """Return the nodes among which a full search finds the best destination.

        With one metric, the best of several nodes of the same size is the one with the lowest load, or the second one
        if the server is on the first.
        """
        if len(self.loads) > 1:
            return self.places
        [load] = self.loads
        sizes: defaultdict[tuple[int, int], list[Place]] = defaultdict(list)
        for place in self.places:
            sizes[place.node.vcpus, place.node.memory].append(place)
        least_loaded = (
            nsmallest(2, places, key=lambda place: load.loads[place.hostname]) for places in sizes.values()
        )
        return [place for places in least_loaded for place in places]

    def simulate(self, server: ServerSnapshot, source: Place, target: Place) -> Move:
        deviation = self.weigh(load.deviation_after(server, source, target) for load in self.loads)
        return Move(deviation, server, source, target)

    def try_move(self, move: Move, solution: Solution) -> bool:
        """Move a server if, after the previous moves, there is capacity and the move still reduces the deviation."""
        now = self.weigh(load.deviation for load in self.loads)
        if not move.target.fits(move.server):
            return False
        if self.simulate(move.server, move.source, move.target).deviation >= now:
            return False
        for load in self.loads:
            load.move(move.server, move.source, move.target)
        self.placement.move(move.server, move.source, move.target)
        solution.migrate(move.server, "live", move.source.hostname, move.target.hostname)
        return True
