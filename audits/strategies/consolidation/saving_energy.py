"""A strategy that switches off compute nodes without servers, except for a reserve."""

from collections.abc import Mapping
from typing import Any

from audits.strategies.base import Solution, Strategy
from cluster.models import ComputeNode
from cluster.snapshot import ClusterSnapshot, NodeSnapshot

ON, OFF = ComputeNode.PowerState.ON, ComputeNode.PowerState.OFF


class SavingEnergy(Strategy):
    """Switch idle nodes off, in descending order of host names, and on, in ascending order.

    Watcher chooses nodes at random (docs/compatibility.md, "Strategies").
    """

    name = "saving_energy"
    display_name = "Saving Energy Strategy"
    goal = "saving_energy"
    schema = {
        "type": "object",
        "properties": {
            "free_used_percent": {
                "description": "The number of idle nodes to keep on, in percent of the nodes with servers.",
                "type": "number",
                "minimum": 0,
                "default": 10.0,
            },
            "min_free_hosts_num": {
                "description": "The minimum number of idle nodes to keep on.",
                "type": "number",
                "minimum": 0,
                "default": 1,
            },
        },
    }

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        nodes = cluster.nodes.values()
        busy = [node for node in nodes if node.servers or node.arriving]
        idle = [node for node in nodes if not (node.servers or node.arriving)]
        ready = [node for node in idle if node.power_state == ON and node.is_up]
        asleep = [node for node in idle if node.power_state == OFF]
        spare_count = int(max(len(busy) * parameters["free_used_percent"] / 100, parameters["min_free_hosts_num"]))
        solution = Solution()
        for node in ready[spare_count:]:
            switch(solution, node, OFF)
        for node in asleep[: max(spare_count - len(ready), 0)]:
            switch(solution, node, ON)
        return solution


def switch(solution: Solution, node: NodeSnapshot, state: str) -> None:
    parameters = {"state": str(state), "resource_name": node.hostname}
    solution.add("change_node_power_state", parameters, resource_id=str(node.uuid))
