"""Switch a compute node on or off."""

from collections.abc import Mapping
from typing import ClassVar

from django.template.defaultfilters import pluralize

from actions.types.base import DONE, ActionFailed, ActionType, Outcome, Recovery
from cluster.drivers.base import cloud

ON, OFF = "on", "off"


class ChangeNodePowerState(ActionType):
    """A node in the wanted state is not changed, and a node with running servers is not switched off.

    The switching can not be aborted: once begun it runs to its end.
    """

    name = "change_node_power_state"
    description = "Compute node power on/off through Ironic or MaaS."
    schema = {
        "type": "object",
        "properties": {
            "resource_id": {"type": "string", "minLength": 1},
            "resource_name": {"type": "string", "minLength": 1},
            "state": {"type": "string", "enum": [ON, OFF]},
        },
        "required": ["resource_id", "state"],
        "additionalProperties": False,
    }
    availability: ClassVar[Mapping[str, bool]] = {ON: True, OFF: False}

    @property
    def node(self) -> str:
        return str(self.input_parameters["resource_id"])

    @property
    def state(self) -> str:
        return str(self.input_parameters["state"])

    def execute(self) -> Outcome:
        self.bring_to(self.state)
        return DONE

    def foresee(self) -> Outcome:
        return self.execute()

    def bring_to(self, state: str) -> None:
        node = cloud().find_node(self.node)
        if node.power_state == state:
            return
        if state == ON:
            cloud().power_on(self.node)
        elif count := node.running_servers:
            raise ActionFailed(f"Compute node {node.hostname} has {count} running server{pluralize(count)}")
        else:
            cloud().power_off(self.node)

    def abort(self) -> bool:
        return False

    def revert(self) -> bool:
        self.bring_to(OFF if self.state == ON else ON)
        return True

    def recover(self) -> Recovery:
        return Recovery.DONE if cloud().find_node(self.node).power_state == self.state else Recovery.AGAIN
