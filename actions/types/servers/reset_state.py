"""Set the state of a server to ACTIVE or ERROR."""

from actions.types import messages
from actions.types.base import DONE, NAME_SCHEMA, SERVER_SCHEMA, ActionSkipException, Answer, Outcome, Recovery
from actions.types.servers.servers import WAITING, ServerAction
from cluster.drivers.base import ServerNotFound, cloud
from cluster.drivers.messages import OTHER_STATUS

STATES = {"active": "ACTIVE", "error": "ERROR"}


class ResetState(ServerAction):
    """Resets the state as Nova's ``os-resetState``, with ``expected_status`` only if the server is in that status."""

    name = "reset_state"
    description = "Reset the state of a server"
    operation = "resetState"
    schema = {
        "type": "object",
        "properties": {
            "resource_id": SERVER_SCHEMA,
            "resource_name": NAME_SCHEMA,
            "state": {"enum": list(STATES), "description": "The state to set."},
            "reason": {"type": "string", "maxLength": 255, "description": "The reason of an error, shown to users."},
            "expected_status": {
                "type": "string",
                "minLength": 1,
                "maxLength": 64,
                "description": "The required status of the server. The action is skipped in any other status.",
            },
        },
        "required": ["resource_id", "state"],
        "additionalProperties": False,
    }

    def pre_condition(self) -> None:
        status = self.server_to_act_on().status
        expected = self.input_parameters.get("expected_status", status)
        if status != expected:
            raise ActionSkipException(OTHER_STATUS.fill(server=self.server, status=status, expected=expected))
        if self.gives_up and (host := cloud().find_host(self.server)):
            raise ActionSkipException(messages.NOT_GIVEN_UP.fill(server=self.server, host=host))

    @property
    def gives_up(self) -> bool:
        """Return whether the action ends a server's wait for capacity."""
        return self.input_parameters.get("expected_status") == WAITING and self.input_parameters["state"] == "error"

    def execute(self) -> Outcome:
        reason, expected = self.input_parameters.get("reason"), self.input_parameters.get("expected_status")
        try:
            cloud().reset_state(self.server, self.input_parameters["state"], reason=reason, expected=expected)
        except ServerNotFound:
            return Outcome(Answer.CANCEL, self.not_found_message)
        return DONE

    def foresee(self) -> Outcome:
        return self.execute()

    def recover(self) -> Recovery:
        server = self.find()
        is_done = server is None or server.status == STATES[self.input_parameters["state"]]
        return Recovery.DONE if is_done else Recovery.AGAIN
