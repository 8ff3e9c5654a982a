"""A strategy that proposes the very actions that it is given."""

from collections.abc import Mapping
from typing import Any

from audits.strategies.base import Solution, Strategy
from cluster.snapshot import ClusterSnapshot
from watcher_site.refusals import Invalid

ACTION = {
    "type": "object",
    "properties": {
        "action_type": {"type": "string"},
        "input_parameters": {"type": "object"},
        "resource_id": {"type": "string"},
    },
    "required": ["action_type", "input_parameters"],
}


class Actuator(Strategy):
    name = "actuator"
    display_name = "Actuator"
    goal = "unclassified"
    distinguished_by = ("actions",)
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "object",
        "properties": {
            "actions": {"description": "the actions to propose, in order", "type": "array", "items": ACTION},
        },
        "required": ["actions"],
    }

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        solution = Solution()
        for position, action in enumerate(parameters["actions"]):
            if strays := action.keys() - ACTION["properties"]:
                raise Invalid(f"actions[{position}].{min(strays)}: is no attribute of an action.")
            solution.add(action["action_type"], action["input_parameters"], resource_id=action.get("resource_id"))
        return solution
