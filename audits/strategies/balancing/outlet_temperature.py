"""A strategy that moves one server away from the hottest node."""

from collections.abc import Mapping
from typing import Any

from audits.strategies import schemas
from audits.strategies.base import Solution, Strategy
from audits.strategies.placement import Placement, enabled
from cluster.datasources.base import Reading
from cluster.snapshot import ClusterSnapshot


class OutletTemperature(Strategy):
    """Move a server from the node with the hottest outlet to a cooler one.

    Nodes are named by host name. Watcher names them by UUID, so that its actions are skipped.
    """

    name = "outlet_temperature"
    display_name = "Outlet temperature based strategy"
    goal = "thermal_optimization"
    metrics = ("host_outlet_temp",)
    schema = {
        "type": "object",
        "properties": {
            "threshold": {
                "description": "The temperature of a node from which a server is moved away, in degrees Celsius.",
                "type": "number",
                "default": 35.0,
            },
            "period": schemas.period(30),
            "granularity": schemas.granularity(300),
        },
    }

    def readings(self, parameters: Mapping[str, Any]) -> Mapping[str, Reading]:
        period, granularity = parameters["period"], parameters["granularity"]
        return {"temperature": Reading("host_outlet_temp", period, granularity=granularity)}

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        placement, solution = Placement(cluster), Solution()
        temperatures = {
            place.hostname: temperature
            for place in placement.places.values()
            if (temperature := cluster.of_node("temperature", place.node)) is not None
        }
        by_heat = sorted(temperatures, key=lambda hostname: (temperatures[hostname], hostname))
        places = [placement.places[hostname] for hostname in by_heat]
        cool = [place for place in enabled(places) if temperatures[place.hostname] < parameters["threshold"]]
        for source in reversed(places):
            if temperatures[source.hostname] < parameters["threshold"]:
                break
            for server in placement.movable(source, only_active=True):
                target = next((place for place in cool if place.fits(server)), None)
                if target:
                    solution.migrate(server, "live", source.hostname, target.hostname)
                    return solution
        return solution
