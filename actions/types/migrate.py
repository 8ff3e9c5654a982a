"""Migrate a server to another compute node."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from actions.messages import ELSEWHERE, NOT_ACTIVE
from actions.types import messages
from actions.types.base import (
    DONE,
    NAME_SCHEMA,
    NODE_SCHEMA,
    SERVER_SCHEMA,
    ActionFailed,
    ActionSkipException,
    ActionType,
    Affected,
    Outcome,
    Recovery,
    operation_on,
)
from actions.types.servers.servers import NEEDED_FOR, require_need
from cluster.drivers.base import CloudError, ComputeServiceNotFound, ServerNotFound, cloud, proceed
from cluster.drivers.messages import ALREADY_THERE, DESTINATION_DISABLED, DESTINATION_DOWN, DESTINATION_NOT_FOUND

LIVE, COLD = "live", "cold"
DESTINATION = "destination_node"


class Migrate(ActionType):
    """Migrates a server, live or cold. Only live migrations can be aborted.

    The messages are Watcher's. In addition to ACTIVE servers, PAUSED ones can be migrated live.
    """

    name = "migrate"
    description = "Moving a VM instance from source_node to destination_node"
    schema = {
        "type": "object",
        "properties": {
            "resource_id": SERVER_SCHEMA,
            "resource_name": NAME_SCHEMA,
            "migration_type": {
                "type": "string",
                "enum": [LIVE, COLD],
                "description": "The kind of migration. `live` needs an active server.",
            },
            "source_node": {
                **NODE_SCHEMA,
                "description": "The host name of the current compute node. The action is skipped on any other node.",
            },
            DESTINATION: {
                "type": ["string", "null"],
                "minLength": 1,
                "description": "The host name of the destination. Without it, or with null, the cloud chooses.",
            },
            **NEEDED_FOR,
        },
        "required": ["resource_id", "migration_type", "source_node"],
        "additionalProperties": False,
    }

    @property
    def server(self) -> str:
        return str(self.input_parameters["resource_id"])

    @property
    def source(self) -> str:
        return str(self.input_parameters["source_node"])

    @property
    def destination(self) -> str | None:
        return self.input_parameters.get(DESTINATION)

    @property
    def is_live(self) -> bool:
        return bool(self.input_parameters["migration_type"] == LIVE)

    @classmethod
    def affected(cls, input_parameters: Mapping[str, Any]) -> Affected:
        name = "live-migration" if input_parameters.get("migration_type") == LIVE else "migrate"
        return replace(super().affected(input_parameters), operations=operation_on(input_parameters, name))

    def pre_condition(self) -> None:
        try:
            server = cloud().find_server(self.server)
        except ServerNotFound as missing:
            raise ActionSkipException(str(missing)) from missing
        if server.host != self.source:
            raise ActionSkipException(ELSEWHERE.fill(server=self.server, source=self.source, host=server.host))
        require_need(self.input_parameters)
        self.check_destination()
        if self.is_live and server.status not in {"ACTIVE", "PAUSED"}:
            raise ActionFailed(NOT_ACTIVE.fill(server=self.server, status=server.status))

    def check_destination(self) -> None:
        if self.destination is None:
            return
        try:
            service = cloud().find_compute_service(self.destination)
        except ComputeServiceNotFound as missing:
            raise ActionFailed(DESTINATION_NOT_FOUND.fill(node=self.destination)) from missing
        if service.status != "enabled":
            raise ActionFailed(DESTINATION_DISABLED.fill(node=self.destination))
        if service.state != "up":
            raise ActionFailed(DESTINATION_DOWN.fill(node=self.destination))
        if self.destination == self.source:
            raise ActionFailed(ALREADY_THERE.fill(server=self.server, node=self.destination))

    def execute(self) -> Outcome:
        self.move(self.destination)
        # The migration has succeeded. If the cloud does not respond, only the output is missing.
        with suppress(CloudError):
            if self.destination is None:
                self.record_destination(cloud().find_server(self.server).host)
        return DONE

    def foresee(self) -> Outcome:
        return self.execute()

    def move(self, destination: str | None) -> None:
        if self.is_live:
            cloud().live_migrate(self.server, destination, self.context.checkpoint)
        else:
            cloud().cold_migrate(self.server, destination, proceed)

    def abort(self) -> bool:
        server = cloud().abort_migration(self.server, self.context.checkpoint)
        if server.host == self.source:
            return True
        if self.has_arrived(server.host):
            self.record_destination(server.host)
            return False
        raise ActionFailed(messages.ELSEWHERE_AFTER_ABORT.fill(server=self.server, host=server.host))

    def revert(self) -> bool:
        """Migrate the server back, also after an interrupted attempt to do so."""
        if cloud().reconcile(self.server, self.context.checkpoint).host != self.source:
            self.move(self.source)
        return True

    def recover(self) -> Recovery:
        server = cloud().reconcile(self.server, self.context.checkpoint)
        if self.has_arrived(server.host):
            self.record_destination(server.host)
            return Recovery.DONE
        if server.host == self.source:
            return Recovery.AGAIN
        raise ActionFailed(messages.ELSEWHERE_AFTER_INTERRUPTION.fill(server=self.server, host=server.host))

    def record_destination(self, host: str | None) -> None:
        """Record in the outputs the compute node that the cloud chose."""
        if self.destination is None and host not in {None, self.source}:
            self.context.outputs[DESTINATION] = host

    def has_arrived(self, host: str | None) -> bool:
        return host == self.destination if self.destination else host not in {None, self.source}
