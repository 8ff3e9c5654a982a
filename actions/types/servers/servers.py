"""The base class of actions on single servers."""

from abc import ABC
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

from actions.messages import NEEDING_SERVER_GONE, NEEDING_SERVER_SERVED, NO_CAPACITY_NEEDED, SERVER_GONE
from actions.types.base import (
    NAME_SCHEMA,
    SERVER_SCHEMA,
    UUID_SCHEMA,
    ActionSkipException,
    ActionType,
    Affected,
    Recovery,
    operation_on,
)
from cluster.drivers.base import CloudServer, ServerNotFound, cloud

NEEDED_FOR = {
    "needed_for": {
        "type": "array",
        "items": UUID_SCHEMA,
        "minItems": 1,
        "description": "The UUIDs of PENDING servers. The action is skipped if none of them is PENDING any more.",
    }
}
WAITING = "PENDING"


class ServerAction(ActionType, ABC):
    """An action on one server, ``resource_id``. Its ``resource_name`` is for users."""

    schema = {
        "type": "object",
        "properties": {"resource_id": SERVER_SCHEMA, "resource_name": NAME_SCHEMA},
        "required": ["resource_id"],
        "additionalProperties": False,
    }

    operation: ClassVar[str]
    """Nova's name of the operation."""

    @classmethod
    def affected(cls, input_parameters: Mapping[str, Any]) -> Affected:
        return replace(super().affected(input_parameters), operations=operation_on(input_parameters, cls.operation))

    @property
    def server(self) -> str:
        return str(self.input_parameters["resource_id"])

    @property
    def not_found_message(self) -> str:
        return SERVER_GONE.fill(server=self.server)

    def find(self) -> CloudServer | None:
        """Return the current server, or None if it was deleted."""
        with suppress(ServerNotFound):
            return cloud().find_server(self.server)
        return None

    def server_to_act_on(self) -> CloudServer:
        """Return the current server. Raises: `ActionSkipException`, if it was deleted."""
        server = self.find()
        if server is None:
            raise ActionSkipException(self.not_found_message)
        return server

    def abort(self) -> bool:
        """Complete the operation, because clouds cannot undo it."""
        if self.recover() is Recovery.AGAIN:
            self.execute()
        return False


def require_need(input_parameters: Mapping[str, Any]) -> None:
    """Check that one of the servers for which an action frees capacity is still PENDING.

    Raises:
        ActionSkipException: none is PENDING; the message gives the reason.
    """
    servers = input_parameters.get("needed_for")
    if not servers:
        return
    reasons = [why_not_waiting(server) for server in servers]
    if all(reasons):
        raise ActionSkipException(NO_CAPACITY_NEEDED.fill(finding=reasons[0]))


def why_not_waiting(server: str) -> str | None:
    try:
        details = cloud().find_server(server)
    except ServerNotFound:
        return NEEDING_SERVER_GONE.fill(server=server)
    return None if details.status == WAITING else NEEDING_SERVER_SERVED.fill(server=server, status=details.status)
