"""Rebuild a server from its image, or build it for the first time."""

from actions.types.base import NAME_SCHEMA, NODE_SCHEMA, SERVER_SCHEMA, ActionSkipException, Outcome, Recovery
from actions.types.servers.build import Build
from actions.types.servers.servers import WAITING
from cluster.drivers.base import cloud
from cluster.drivers.messages import OTHER_STATUS

BUILDS = "builds"


class Rebuild(Build):
    """Rebuild a server, as Nova does, or build a PENDING one (docs/compatibility.md, "The PENDING status")."""

    name = "rebuild"
    description = "Rebuild a server, or build one that has not run yet"
    operation = "rebuild"
    schema = {
        "type": "object",
        "properties": {
            "resource_id": SERVER_SCHEMA,
            "resource_name": NAME_SCHEMA,
            "image": {
                "type": ["string", "null"],
                "minLength": 1,
                "maxLength": 255,
                "description": "The ID of the image. By default the image of the server is used.",
            },
            "destination_node": {
                **NODE_SCHEMA,
                "description": (
                    "The host name of the destination of a server that has never run. By default the cloud chooses."
                ),
            },
            "expected_status": {
                "enum": [WAITING],
                "description": "The required status of the server. The action is skipped in any other status.",
            },
        },
        "required": ["resource_id"],
        "additionalProperties": False,
    }

    @property
    def must_wait(self) -> bool:
        """Return whether the action is for PENDING servers only: a running server must not lose its data."""
        return self.input_parameters.get("expected_status") == WAITING

    def pre_condition(self) -> None:
        status = self.server_to_act_on().status
        if self.must_wait and status != WAITING:
            raise ActionSkipException(OTHER_STATUS.fill(server=self.server, status=status, expected=WAITING))

    def build(self) -> None:
        if self.is_to_be_built():
            host = self.input_parameters.get("destination_node")
            cloud().build_server(self.server, self.context.checkpoint, host)
        else:
            cloud().rebuild_server(self.server, self.input_parameters.get("image"), self.context.checkpoint)

    def is_to_be_built(self) -> bool:
        """Return whether the server had never run when this action first checked.

        The result of that check is stored.
        """
        if self.must_wait:
            return True
        if BUILDS not in self.context.data:
            self.context.save_data({BUILDS: not cloud().find_server(self.server).has_run})
        return bool(self.context.data[BUILDS])

    def foresee(self) -> Outcome:
        return self.execute()

    def recover(self) -> Recovery:
        """Repeat a rebuild, which has the same result; a build that has ended is not repeated."""
        server = self.find()
        was_built = self.must_wait or self.context.data.get(BUILDS)
        is_done = server is None or (was_built and server.has_run)
        return Recovery.DONE if is_done else Recovery.AGAIN
