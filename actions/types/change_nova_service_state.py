"""Enable or disable a compute node for the scheduler."""

from collections.abc import Mapping
from typing import Any, ClassVar

from actions.messages import SERVICE_IN_STATE
from actions.types import messages
from actions.types.base import DONE, ActionFailed, ActionSkipException, ActionType, Affected, Outcome, Recovery
from cluster.drivers.base import ComputeServiceNotFound, cloud

ENABLED, DISABLED = "enabled", "disabled"


class ChangeNovaServiceState(ActionType):
    """Enables or disables the service of the host ``resource_name``. ``resource_id`` is only for links."""

    name = "change_nova_service_state"
    description = (
        "Disables or enables the nova-compute service."
        "A disabled nova-compute service can not be selected by the nova for future deployment of new server."
    )
    schema = {
        "type": "object",
        "properties": {
            "resource_id": {"type": "string", "minLength": 1, "description": "The UUID of the compute node."},
            "resource_name": {
                "type": "string",
                "minLength": 1,
                "description": "The host name of the compute node. Without it the action fails.",
            },
            "state": {
                "type": "string",
                "enum": ["up", ENABLED, "down", DISABLED],
                "description": "The state to set. The action fails with `up` and `down`, which Watcher also allows.",
            },
            "disabled_reason": {
                "type": "string",
                "minLength": 1,
                "maxLength": 255,
                "description": "The reason that is stored with a disabled service.",
            },
            "revertible": {
                "type": "boolean",
                "default": True,
                "description": "Whether a rollback restores the former state.",
            },
        },
        "required": ["resource_id", "state"],
        "additionalProperties": False,
    }
    availability: ClassVar[Mapping[str, bool]] = {ENABLED: True, DISABLED: False}

    @classmethod
    def affected(cls, input_parameters: Mapping[str, Any]) -> Affected:
        """Return the host ``resource_name`` as affected, which may differ from that of ``resource_id``."""
        host = input_parameters.get("resource_name")
        return Affected(input_parameters.get("resource_id"), compute_nodes=[host] if host else [])

    @property
    def host(self) -> str:
        return str(self.input_parameters.get("resource_name"))

    @property
    def state(self) -> str:
        return str(self.input_parameters["state"])

    def pre_condition(self) -> None:
        if "resource_name" not in self.input_parameters:
            raise ActionFailed(messages.HOST_NAME_REQUIRED.text)
        try:
            service = cloud().find_compute_service(self.host)
        except ComputeServiceNotFound as missing:
            raise ActionSkipException(str(missing)) from missing
        if service.status == self.state:
            raise ActionSkipException(SERVICE_IN_STATE.fill(host=self.host, state=self.state))

    def execute(self) -> Outcome:
        self.set_state(self.state)
        return DONE

    def foresee(self) -> Outcome:
        return self.execute()

    def set_state(self, state: str) -> None:
        if state == ENABLED:
            cloud().enable_compute_service(self.host)
        elif state == DISABLED:
            cloud().disable_compute_service(self.host, self.input_parameters.get("disabled_reason"))
        else:
            raise ActionFailed(messages.STATE_UNDEFINED.text)

    def revert(self) -> bool:
        if not self.input_parameters["revertible"]:
            raise ActionFailed(messages.SERVICE_STAYS.fill(host=self.host, state=self.state))
        self.set_state(DISABLED if self.state == ENABLED else ENABLED)
        return True

    def recover(self) -> Recovery:
        done = cloud().find_compute_service(self.host).status == self.state
        return Recovery.DONE if done else Recovery.AGAIN
