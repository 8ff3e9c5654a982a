"""A strategy that empties whole nodes, and moves their servers to nodes with more allocated vcpus."""

from collections.abc import Mapping
from typing import Any

from audits.strategies.base import CONSOLIDATED, Solution, Strategy
from audits.strategies.placement import Amounts, FirstFit, Place, Placement, migration_of, smallest
from cluster.snapshot import ClusterSnapshot, ServerSnapshot


class NodeResourceConsolidation(Strategy):
    name = "node_resource_consolidation"
    display_name = "Node Resource Consolidation strategy"
    goal = "server_consolidation"
    planner = "node_resource_consolidation"
    schema = {
        "type": "object",
        "properties": {
            "host_choice": {
                "description": "The choice of destinations: auto: by the cloud; specify: by the strategy.",
                "type": "string",
                "default": "auto",
            },
        },
    }

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        decision = ResourceConsolidation(cluster)
        decision.choose_sources()
        if parameters["host_choice"] == "auto":
            return decision.add_without_destinations()
        return decision.add_with_destinations()


class ResourceConsolidation:
    """The state of one run: free nodes, sources with the moves that empty them, and destinations."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self.placement = Placement(cluster)
        enabled = [place for place in self.placement.places.values() if place.node.is_enabled]
        self.enabled_count = len(enabled)
        self.free = [place for place in enabled if place.is_empty]
        busy = [place for place in enabled if not place.is_empty]
        # With the most used vcpus first.
        self.busy = sorted(busy, key=lambda place: (-used_vcpus(place), place.hostname))
        self.moves: dict[str, list[tuple[ServerSnapshot, Place]]] = {}
        self.destinations: set[str] = set()
        fullest = sorted(busy, key=lambda place: (place.free_vcpus, place.hostname))
        self.targets = FirstFit(fullest, self.capacity, smallest(cluster.servers))

    def choose_sources(self) -> None:
        """Select as sources the nodes whose servers all fit on busier nodes, beginning with the least busy one."""
        for source in reversed(self.busy):
            if source.hostname not in self.destinations:
                self.try_source(source)

    def try_source(self, source: Place) -> None:
        servers = sorted(self.placement.movable(source), key=size, reverse=True)
        if not servers or len(servers) < len(source.servers) or source.node.arriving:
            return
        used, moves = used_vcpus(source), list[tuple[ServerSnapshot, Place]]()
        for server in servers:

            def takes(place: Place, server: ServerSnapshot = server) -> bool:
                return used_vcpus(place) >= used and place is not source and place.admits(server)

            target = self.targets.find((server.vcpus, server.memory, server.disk), takes)
            if target is None:
                self.undo(source, moves)
                return
            self.placement.move(server, source, target)
            self.targets.refresh(source, target)
            moves.append((server, target))
        self.moves[source.hostname] = moves
        self.destinations |= {target.hostname for _, target in moves}
        self.targets.refresh(source)

    def capacity(self, place: Place) -> Amounts:
        """Return the free capacity of a node; negative for a source, which receives no servers."""
        return (-1.0,) * len(place.free) if place.hostname in self.moves else place.free

    def undo(self, source: Place, moves: list[tuple[ServerSnapshot, Place]]) -> None:
        for server, target in moves:
            self.placement.move(server, target, source)
            self.targets.refresh(source, target)

    def add_without_destinations(self) -> Solution:
        """Disable the nodes that are or become empty, so that the scheduler chooses among the others."""
        if not self.moves:
            return self.report(Solution())
        solution = Solution()
        closed = [*self.free, *(self.placement.places[hostname] for hostname in self.moves)]
        for place in closed:
            solution.disable(place.node, CONSOLIDATED)
        self.migrate(solution, with_destination=False)
        for place in closed:
            solution.enable(place.node)
        return self.report(solution)

    def add_with_destinations(self) -> Solution:
        solution = Solution()
        self.migrate(solution, with_destination=True)
        return self.report(solution)

    def migrate(self, solution: Solution, *, with_destination: bool) -> None:
        for hostname, moves in self.moves.items():
            for server, target in moves:
                destination = target.hostname if with_destination else None
                solution.migrate(server, migration_of(server) or "live", hostname, destination)

    def report(self, solution: Solution) -> Solution:
        solution.indicators = {
            "compute_nodes_count": self.enabled_count,
            "released_compute_nodes_count": len(self.moves),
            "instance_migrations_count": sum(map(len, self.moves.values())),
        }
        return solution


def used_vcpus(place: Place) -> float:
    return place.node.capacity_vcpus - place.free_vcpus


def size(server: ServerSnapshot) -> tuple[int, int]:
    return server.vcpus, server.memory
