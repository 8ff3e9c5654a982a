"""Change the flavor of a server."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

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
from cluster.drivers.base import CloudServer, ServerNotFound, cloud


class Resize(ActionType):
    """Resizes a server to the flavor with this id or name. It cannot be aborted or reverted."""

    name = "resize"
    description = "Resize a server with specified flavor."
    schema = {
        "type": "object",
        "properties": {
            "resource_id": SERVER_SCHEMA,
            "flavor": {"type": "string", "minLength": 1, "description": "The ID or the name of the new flavor."},
        },
        "required": ["resource_id", "flavor"],
        "additionalProperties": False,
    }

    @property
    def server(self) -> str:
        return str(self.input_parameters["resource_id"])

    @property
    def flavor(self) -> str:
        return str(self.input_parameters["flavor"])

    @classmethod
    def affected(cls, input_parameters: Mapping[str, Any]) -> Affected:
        return replace(super().affected(input_parameters), operations=operation_on(input_parameters, cls.name))

    def pre_condition(self) -> None:
        try:
            cloud().find_server(self.server)
        except ServerNotFound as missing:
            raise ActionSkipException(str(missing)) from missing
        cloud().find_flavor(self.flavor)

    def execute(self) -> Outcome:
        cloud().resize(self.server, self.flavor)
        return DONE

    def foresee(self) -> Outcome:
        return self.execute()

    def abort(self) -> bool:
        return False

    def recover(self) -> Recovery:
        server = cloud().reconcile(self.server, self.context.checkpoint)
        return Recovery.DONE if self.is_resized(server) else Recovery.AGAIN

    def is_resized(self, server: CloudServer) -> bool:
        return server.flavor is not None and server.flavor == cloud().find_flavor(self.flavor).name
