"""A strategy that moves servers away from the node with the strongest airflow."""

from collections.abc import Mapping, Sequence
from typing import Any

from audits.strategies import schemas
from audits.strategies.base import Solution, Strategy
from audits.strategies.placement import Place, Placement, enabled
from cluster.datasources.base import Reading
from cluster.snapshot import ClusterSnapshot, ServerSnapshot

METRICS = {"airflow": "host_airflow", "inlet_temperature": "host_inlet_temp", "power": "host_power"}
NUMBER = {"type": "number"}


class UniformAirflow(Strategy):
    """Move one server from the node with the strongest airflow, or all if its fan seems to be broken.

    A fan seems to be broken if the airflow is strong although power and inlet temperature are low.
    """

    name = "uniform_airflow"
    display_name = "Uniform airflow migration strategy"
    goal = "airflow_optimization"
    metrics = tuple(METRICS.values())
    schema = {
        "type": "object",
        "properties": {
            "threshold_airflow": {
                "description": "The airflow of a node from which servers are moved away, in 0.1 CFM.",
                "default": 400.0,
                **NUMBER,
            },
            "threshold_inlet_t": {
                "description": "The inlet temperature below which a fan may be broken, in degrees Celsius.",
                "default": 28.0,
                **NUMBER,
            },
            "threshold_power": {
                "description": "The power below which a fan may be broken, in W.",
                "default": 350.0,
                **NUMBER,
            },
            "period": schemas.period(300),
            "granularity": schemas.granularity(300),
        },
    }

    def readings(self, parameters: Mapping[str, Any]) -> Mapping[str, Reading]:
        period, granularity = parameters["period"], parameters["granularity"]
        return {name: Reading(metric, period, granularity=granularity) for name, metric in METRICS.items()}

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        placement, solution = Placement(cluster), Solution()
        airflows = {
            place.hostname: airflow
            for place in placement.places.values()
            if (airflow := cluster.of_node("airflow", place.node)) is not None
        }
        places = [
            placement.places[name] for name in sorted(airflows, key=lambda hostname: (airflows[hostname], hostname))
        ]
        targets = [place for place in enabled(places) if airflows[place.hostname] < parameters["threshold_airflow"]]
        if places and airflows[places[-1].hostname] >= parameters["threshold_airflow"]:
            source = places[-1]
            leaving = choose_servers(placement, source, cluster, parameters)
            for server, target in find_moves(placement, leaving, source, targets):
                solution.migrate(server, "live", source.hostname, target.hostname)
        return solution


def choose_servers(
    placement: Placement, source: Place, cluster: ClusterSnapshot, parameters: Mapping[str, Any]
) -> list[ServerSnapshot]:
    """Return the servers to migrate: all if a fan seems to be broken, otherwise the first one."""
    servers = placement.movable(source, only_active=True)
    temperature, power = cluster.of_node("inlet_temperature", source.node), cluster.of_node("power", source.node)
    if temperature is None or power is None:
        return servers[:1]
    broken = temperature < parameters["threshold_inlet_t"] and power < parameters["threshold_power"]
    return servers if broken else servers[:1]


def find_moves(
    placement: Placement, servers: Sequence[ServerSnapshot], source: Place, targets: Sequence[Place]
) -> list[tuple[ServerSnapshot, Place]]:
    """Return the target of each server, largest first, or an empty list if one of them fits nowhere."""
    moves = []
    for server in sorted(servers, key=lambda server: (server.vcpus, server.memory, server.disk), reverse=True):
        target = next((place for place in targets if place.fits(server)), None)
        if target is None:
            return []
        placement.move(server, source, target)
        moves.append((server, target))
    return moves
