"""A strategy that moves servers away from overloaded nodes and empties idle nodes, by the measured use of servers.

Differences from Watcher's strategy (docs/compatibility.md, "Strategies"): a node is emptied entirely or not at all;
only nodes that the strategy itself disabled are enabled again; and because the mean of an hour does not predict the
next minutes, a node is overloaded by its current use, and capacity is reserved for the peak use in the period.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from audits.strategies import schemas
from audits.strategies.base import EMPTIED, Solution, Strategy
from audits.strategies.placement import Amounts, FirstFit, Place, Placement, migration_of
from cluster.datasources.base import Reading
from cluster.snapshot import ClusterSnapshot, ServerSnapshot

KIB_IN_MB = 1024
# A node is full if its free capacity does not exceed these amounts, in vcpus, MB and GB.
FULL = (0, 128, 0)
# The position of the reserved use between the mean (0) and the maximum (1) of the period. Smaller values use fewer
# nodes, and overload them more often.
RESERVE = 0.5
NOW, MOST = "instance_cpu_usage now", "instance_cpu_usage at most"


class VMWorkloadConsolidation(Strategy):
    name = "vm_workload_consolidation"
    display_name = "VM Workload Consolidation Strategy"
    goal = "server_consolidation"
    metrics = ("instance_cpu_usage",)
    schema = {
        "type": "object",
        "properties": {"period": schemas.period(3600), "granularity": schemas.granularity(300)},
    }

    def readings(self, parameters: Mapping[str, Any]) -> Mapping[str, Reading]:
        names = [
            "instance_cpu_usage",
            "instance_ram_usage",
            "instance_ram_allocated",
            "instance_root_disk_size",
            "host_cpu_usage",
            "host_ram_usage",
        ]
        period, granularity = parameters["period"], parameters["granularity"]
        means = {name: Reading(name, period, granularity=granularity, required=name in self.metrics) for name in names}
        [cpu] = self.metrics
        return {
            **means,
            MOST: Reading(cpu, period, "max", granularity, required=False),
            NOW: Reading(cpu, min(granularity or period, period), required=False),
        }

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        return Consolidation(cluster).solve()


class Consolidation:
    """The state of one run. ``used`` has the reserved vcpus, MB and GB of each node, including planned moves.

    ``loads`` has the currently used vcpus of each node.
    """

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self.cluster = cluster
        self.placement = Placement(cluster)
        self.places = list(self.placement.places.values())
        self.uses = {server.uuid: self.use_of(server) for server in cluster.servers}
        self.used = {place.hostname: self.use_on(place) for place in self.places}
        self.loads = {place.hostname: self.load_now(place) for place in self.places}
        self.origins: dict[Any, tuple[ServerSnapshot, Place]] = {}

    def solve(self) -> Solution:
        self.offload()
        self.consolidate()
        return self.conclude()

    def use_of(self, server: ServerSnapshot) -> Amounts:
        memory = self.cluster.of_server("instance_ram_usage", server)
        if memory is None:
            memory = self.cluster.of_server("instance_ram_allocated", server)
        disk = self.cluster.of_server("instance_root_disk_size", server)
        return (
            self.vcpus_of(server),
            server.memory if memory is None else memory,
            server.disk if disk is None else disk,
        )

    def vcpus_of(self, server: ServerSnapshot) -> float:
        """Return the vcpus to reserve: the maximum of the current use and the estimated peak use."""
        mean, most = self.cluster.of_server("instance_cpu_usage", server), self.cluster.of_server(MOST, server)
        now = self.current_use(server)
        if mean is None or most is None:
            return now if mean is None else max(now, server.vcpus * mean / 100)
        return max(now, server.vcpus * (mean + RESERVE * (most - mean)) / 100)

    def current_use(self, server: ServerSnapshot) -> float:
        """Return the vcpus that a server uses now, by default on average, or else all of its vcpus."""
        percent = self.cluster.of_server(NOW, server)
        if percent is None:
            percent = self.cluster.of_server("instance_cpu_usage", server)
        return server.vcpus if percent is None else server.vcpus * percent / 100

    def load_now(self, place: Place) -> float:
        host_load = (self.cluster.of_node("host_cpu_usage", place.node) or 0) * place.node.vcpus / 100
        return max(host_load, sum(map(self.current_use, [*place.node.servers, *place.node.arriving])))

    def use_on(self, place: Place) -> Amounts:
        """Return the use of a node: the maximum of the sum of its servers and its own readings."""
        node = place.node
        percent, kibibytes = self.cluster.of_node("host_cpu_usage", node), self.cluster.of_node("host_ram_usage", node)
        host_use = ((percent or 0) * node.vcpus / 100, (kibibytes or 0) / KIB_IN_MB, 0.0)
        servers = [self.uses[server.uuid] for server in node.servers]
        arriving = [self.uses.get(server.uuid) or self.use_of(server) for server in node.arriving]
        totals = [sum(amounts) for amounts in zip((0, 0, 0), *servers, *arriving, strict=True)]
        return tuple(map(max, host_use, totals))

    def capacity(self, place: Place) -> Amounts:
        """Return the free capacity of a node, by use and by allocation; negative for a full node."""
        node = place.node
        capacity = (node.vcpus, node.memory, node.disk)
        by_use = [total - used for total, used in zip(capacity, self.used[place.hostname], strict=True)]
        if any(free <= minimum for free, minimum in zip(by_use, FULL, strict=True)):
            return (-1.0,) * 6
        return *by_use, *place.free

    def by_use(self) -> list[Place]:
        """Return the nodes by the used share of their processors, busiest first. Disabled nodes come last."""
        return sorted(self.places, key=lambda place: (not is_enabled(place), -self.load(place), place.hostname))

    def load(self, place: Place) -> float:
        return self.used[place.hostname][0] / max(place.node.vcpus, 1)

    def sorted_servers(self, place: Place, *, largest_first: bool) -> list[ServerSnapshot]:
        servers = self.placement.movable(place)
        return sorted(servers, key=lambda server: self.uses[server.uuid], reverse=largest_first)

    def offload(self) -> None:
        """Move servers away from nodes with overloaded processors, smallest servers first."""
        busiest = self.by_use()
        targets = FirstFit(
            [place for place in busiest if is_enabled(place) or is_disabled_by_strategy(place)], self.capacity
        )
        for source in busiest:
            for server in self.sorted_servers(source, largest_first=False):
                if self.loads[source.hostname] <= source.node.vcpus:
                    break
                target = self.find(server, source, targets)
                if target:
                    self.move(server, source, target, targets)

    def consolidate(self) -> None:
        """Empty the least busy nodes by moves to busier ones, largest servers first, if all of their servers fit."""
        busiest = [place for place in self.by_use() if is_enabled(place)]
        targets = FirstFit(busiest, self.capacity)
        for source in reversed(busiest):
            servers = self.sorted_servers(source, largest_first=True)
            if len(servers) == len(source.servers) and not source.node.arriving:
                self.empty(source, servers, targets)

    def empty(self, source: Place, servers: list[ServerSnapshot], targets: FirstFit) -> None:
        before, moved = targets.positions[source.hostname], list[tuple[ServerSnapshot, Place]]()
        for server in servers:
            target = self.find(server, source, targets, before)
            if target is None:
                for moving, destination in moved:
                    self.move(moving, destination, source, targets)
                return
            self.move(server, source, target, targets)
            moved.append((server, target))

    def find(
        self, server: ServerSnapshot, source: Place, targets: FirstFit, before: int | None = None
    ) -> Place | None:
        amounts = (*self.uses[server.uuid], server.vcpus, server.memory, server.disk)
        return targets.find(amounts, lambda place: place is not source and place.admits(server), before)

    def move(self, server: ServerSnapshot, source: Place, target: Place, targets: FirstFit) -> None:
        self.origins.setdefault(server.uuid, (server, source))
        self.placement.move(server, source, target)
        self.loads[source.hostname] -= self.current_use(server)
        self.loads[target.hostname] += self.current_use(server)
        use = self.uses[server.uuid]
        self.used[source.hostname] = tuple(
            before - change for before, change in zip(self.used[source.hostname], use, strict=True)
        )
        self.used[target.hostname] = tuple(
            before + change for before, change in zip(self.used[target.hostname], use, strict=True)
        )
        targets.refresh(source, target)

    @cached_property
    def moves(self) -> list[tuple[ServerSnapshot, Place, Place]]:
        """Return the moves, with several moves of a server combined, and without those back to the origin."""
        places_by_server = {uuid: place for place in self.places for uuid in place.servers}
        moved = [(server, origin, places_by_server[uuid]) for uuid, (server, origin) in self.origins.items()]
        return [move for move in moved if move[1] is not move[2]]

    def conclude(self) -> Solution:
        solution = Solution()
        needed = {target.hostname: target for _, _, target in self.moves if not target.node.is_enabled}
        for target in needed.values():
            solution.enable(target.node)
        for server, source, target in self.moves:
            solution.migrate(server, migration_of(server) or "live", source.hostname, target.hostname)
        empty = [place for place in self.places if place.is_empty and place.node.is_enabled]
        for place in empty:
            solution.disable(place.node, EMPTIED)
        solution.indicators = {
            "compute_nodes_count": sum(place.node.is_enabled for place in self.places),
            "released_compute_nodes_count": max(len(empty) - len(needed), 0),
            "instance_migrations_count": len(self.moves),
        }
        return solution


def is_enabled(place: Place) -> bool:
    return place.node.is_enabled


def is_disabled_by_strategy(place: Place) -> bool:
    """Return whether this strategy, and not a user, disabled the node, so that it may be enabled again."""
    return not place.node.is_enabled and place.node.disabled_reason == EMPTIED
