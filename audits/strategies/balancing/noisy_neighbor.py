"""A strategy that moves servers away from prioritised servers whose processor cache they use."""

from collections.abc import Mapping
from typing import Any

from audits.strategies.base import Solution, Strategy
from audits.strategies.placement import Place, Placement, enabled
from cluster.datasources.base import Reading
from cluster.snapshot import ClusterSnapshot, ServerSnapshot

PRIORITY = "watcher-priority"


class NoisyNeighbor(Strategy):
    """Move servers that displace the processor cache of prioritised servers on the same node.

    The readings ``now`` and ``before`` are of two consecutive periods. Watcher queries its data source with wrong
    arguments and names nodes by UUID, so that it never moves a server (docs/compatibility.md, "Strategies").
    """

    name = "noisy_neighbor"
    display_name = "Noisy Neighbor"
    goal = "noisy_neighbor"
    metrics = ("instance_l3_cache_usage",)
    schema = {
        "type": "object",
        "properties": {
            "cache_threshold": {
                "description": "The minimum change of the use of the cache, in percent.",
                "type": "number",
                "minimum": 0,
                "default": 35.0,
            },
            "period": {
                "description": "The length of each of the two compared periods, in seconds.",
                "type": "number",
                "exclusiveMinimum": 0,
                "default": 100.0,
            },
        },
        "$schema": "https://json-schema.org/draft/2020-12/schema",
    }

    def readings(self, parameters: Mapping[str, Any]) -> Mapping[str, Reading]:
        [metric], period = self.metrics, parameters["period"]
        return {"now": Reading(metric, period), "before": Reading(metric, period, ago=period)}

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        """Propose to migrate at most one server: one with the largest gain, on a node whose priority server lost."""
        threshold, placement, solution = parameters["cache_threshold"], Placement(cluster), Solution()
        for place in placement.places.values():
            changes = {server.uuid: relative_change(cluster, server) for server in place.servers.values()}
            losers = [
                server
                for server in place.servers.values()
                if PRIORITY in server.metadata and changes[server.uuid] < -threshold
            ]
            noisy = [
                server
                for server in placement.movable(place, only_active=True)
                if PRIORITY not in server.metadata and changes[server.uuid] > threshold
            ]
            for server in sorted(noisy, key=lambda server: changes[server.uuid], reverse=True) if losers else []:
                target = find_target(placement, server, place)
                if target:
                    solution.migrate(server, "live", place.hostname, target.hostname)
                    return solution
        return solution


def relative_change(cluster: ClusterSnapshot, server: ServerSnapshot) -> float:
    """Return the change of a server's use of the cache in percent, or 0 if it is unknown."""
    before, now = cluster.of_server("before", server), cluster.of_server("now", server)
    return 100 * (now - before) / before if before and now is not None else 0


def find_target(placement: Placement, server: ServerSnapshot, source: Place) -> Place | None:
    candidates = enabled(placement.places.values())
    return next((place for place in candidates if place is not source and place.fits(server)), None)
