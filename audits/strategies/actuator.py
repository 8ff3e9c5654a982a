"""A strategy that proposes the actions in its parameters."""

from collections.abc import Mapping
from typing import Any

from actions.types.base import ActionType
from audits import messages
from audits.strategies.base import Solution, Strategy
from cluster.snapshot import ClusterSnapshot
from watcher_site.messages import cut
from watcher_site.plugins import load
from watcher_site.refusals import Invalid
from watcher_site.validation import find_violation

# The shown length of an unknown name.
SHOWN = 60

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
            "actions": {"description": "The actions to propose, in order.", "type": "array", "items": ACTION},
        },
        "required": ["actions"],
    }

    def check(self, parameters: Mapping[str, Any]) -> None:
        for position, action in enumerate(parameters["actions"]):
            check_action(f"actions.{position}", action)

    def models(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        return ()

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        solution = Solution()
        for action in parameters["actions"]:
            solution.add(action["action_type"], action["input_parameters"], resource_id=action.get("resource_id"))
        return solution


def check_action(field: str, action: Mapping[str, Any]) -> None:
    """Raise `Invalid` unless the action type exists, and its schema allows the input parameters."""
    if unknown := action.keys() - ACTION["properties"]:
        raise Invalid(messages.NO_ATTRIBUTE_OF_ACTION.fill(field=field, name=min(unknown)))
    installed: Mapping[str, type[ActionType]] = load("ACTION_TYPES")
    if action["action_type"] not in installed:
        raise Invalid(messages.NO_ACTION_TYPE.fill(field=field, name=cut(action["action_type"], SHOWN)))
    if "resource_id" in action["input_parameters"]:
        raise Invalid(messages.RESOURCE_AMONG_INPUTS.fill(field=field))
    target = {name: action[name] for name in ("resource_id",) if name in action}
    violation = find_violation(installed[action["action_type"]].validator, {**action["input_parameters"], **target})
    if violation:
        raise Invalid(f"{field}.input_parameters: {violation}")
