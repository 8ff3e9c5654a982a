"""Switch a compute node on or off."""

from collections.abc import Mapping
from typing import ClassVar

from actions.types import messages
from actions.types.base import DONE, NODE_SCHEMA, ActionFailed, ActionSkipException, ActionType, Outcome, Recovery
from cluster.drivers.base import cloud
from cluster.drivers.messages import describe_running

ON, OFF = "on", "off"


class ChangeNodePowerState(ActionType):
    """Switches a node on or off, unless it is in that state. A node with running servers is not switched off.

    With ``fence``, a node whose compute service is down is switched off even with servers on it, so that they can be
    evacuated. A rollback does not switch it on again.

    The action cannot be aborted.
    """

    name = "change_node_power_state"
    description = "Compute node power on/off through Ironic or MaaS."
    schema = {
        "type": "object",
        "properties": {
            "resource_id": {"type": "string", "minLength": 1, "description": "The UUID of the compute node."},
            "resource_name": {**NODE_SCHEMA, "description": "The host name of the compute node, shown to users."},
            "state": {"type": "string", "enum": [ON, OFF], "description": "The power state to set."},
            "fence": {
                "type": "boolean",
                "default": False,
                "description": (
                    "True: switch the node off even if servers are on it, unless its compute service is up: "
                    "then the action is skipped. Only with `off`."
                ),
            },
        },
        "required": ["resource_id", "state"],
        "if": {"properties": {"fence": {"const": True}}, "required": ["fence"]},
        "then": {"properties": {"state": {"const": OFF}}},
        "additionalProperties": False,
    }
    availability: ClassVar[Mapping[str, bool]] = {ON: True, OFF: False}

    @property
    def node(self) -> str:
        return str(self.input_parameters["resource_id"])

    @property
    def state(self) -> str:
        return str(self.input_parameters["state"])

    @property
    def is_fencing(self) -> bool:
        return bool(self.input_parameters["fence"])

    def pre_condition(self) -> None:
        if self.is_fencing:
            host = cloud().find_node(self.node).hostname
            if cloud().find_compute_service(host).state == "up":
                raise ActionSkipException(messages.NODE_UP_AGAIN.fill(node=host))

    def execute(self) -> Outcome:
        self.set_state(self.state)
        return DONE

    def foresee(self) -> Outcome:
        return self.execute()

    def set_state(self, state: str) -> None:
        node = cloud().find_node(self.node)
        if node.power_state == state:
            return
        if state == ON:
            cloud().power_on(self.node)
        elif self.is_fencing:
            cloud().power_off(self.node, is_fencing=True)
        elif count := node.running_servers:
            raise ActionFailed(describe_running(node.hostname, count))
        else:
            cloud().power_off(self.node)

    def abort(self) -> bool:
        return False

    def revert(self) -> bool:
        if self.is_fencing:
            raise ActionFailed(messages.NODE_FENCED.text)
        self.set_state(OFF if self.state == ON else ON)
        return True

    def recover(self) -> Recovery:
        return Recovery.DONE if cloud().find_node(self.node).power_state == self.state else Recovery.AGAIN
