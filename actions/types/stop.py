"""Stop a server."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from actions.messages import ALREADY_STOPPED
from actions.types.base import (
    DONE,
    SERVER_SCHEMA,
    ActionSkipException,
    ActionType,
    Affected,
    Outcome,
    Recovery,
    operation_on,
)
from actions.types.servers.servers import NEEDED_FOR, require_need
from cluster.drivers.base import ServerNotFound, cloud

STOPPED = "SHUTOFF"


class Stop(ActionType):
    """Stops a server. It cannot be aborted."""

    name = "stop"
    description = "Stop a VM instance"
    schema = {
        "type": "object",
        "properties": {"resource_id": SERVER_SCHEMA, **NEEDED_FOR},
        "required": ["resource_id"],
        "additionalProperties": False,
    }

    @property
    def server(self) -> str:
        return str(self.input_parameters["resource_id"])

    @classmethod
    def affected(cls, input_parameters: Mapping[str, Any]) -> Affected:
        return replace(super().affected(input_parameters), operations=operation_on(input_parameters, cls.name))

    def pre_condition(self) -> None:
        try:
            server = cloud().find_server(self.server)
        except ServerNotFound as missing:
            raise ActionSkipException(str(missing)) from missing
        if server.status == STOPPED:
            raise ActionSkipException(ALREADY_STOPPED.fill(server=self.server))
        require_need(self.input_parameters)

    def execute(self) -> Outcome:
        """Stop the server, or do nothing if it was deleted meanwhile."""
        with suppress(ServerNotFound):
            cloud().stop(self.server)
        return DONE

    def foresee(self) -> Outcome:
        return self.execute()

    def abort(self) -> bool:
        return False

    def revert(self) -> bool:
        if cloud().reconcile(self.server, self.context.checkpoint).status == STOPPED:
            cloud().start(self.server)
        return True

    def recover(self) -> Recovery:
        try:
            stopped = cloud().reconcile(self.server, self.context.checkpoint).status == STOPPED
        except ServerNotFound:
            return Recovery.DONE
        return Recovery.DONE if stopped else Recovery.AGAIN
