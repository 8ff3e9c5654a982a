"""Delete a server."""

from contextlib import suppress

from actions.types.base import DONE, NAME_SCHEMA, SERVER_SCHEMA, Outcome, Recovery
from actions.types.servers.servers import NEEDED_FOR, ServerAction, require_need
from cluster.drivers.base import ServerNotFound, cloud


class DeleteServer(ServerAction):
    """Deletes a server. It cannot be aborted or reverted."""

    name = "delete_server"
    description = "Delete a server"
    operation = "delete"
    schema = {
        "type": "object",
        "properties": {"resource_id": SERVER_SCHEMA, "resource_name": NAME_SCHEMA, **NEEDED_FOR},
        "required": ["resource_id"],
        "additionalProperties": False,
    }

    def pre_condition(self) -> None:
        self.server_to_act_on()
        require_need(self.input_parameters)

    def execute(self) -> Outcome:
        with suppress(ServerNotFound):
            cloud().delete_server(self.server, self.context.checkpoint)
        return DONE

    def foresee(self) -> Outcome:
        return self.execute()

    def recover(self) -> Recovery:
        return Recovery.AGAIN if self.find() else Recovery.DONE
