"""Evacuate a server from a failed compute node."""

from actions.types import messages
from actions.types.base import (
    DONE,
    NAME_SCHEMA,
    NODE_SCHEMA,
    SERVER_SCHEMA,
    ActionFailed,
    ActionSkipException,
    Answer,
    Outcome,
    Recovery,
)
from actions.types.servers.servers import ServerAction
from cluster.drivers.base import (
    CloudServer,
    ComputeService,
    ComputeServiceNotFound,
    NoValidHost,
    ServerNotFound,
    cloud,
)
from cluster.drivers.rules import CONFIRMED, NOT_FENCED, VERIFY

EVACUABLE = {"ACTIVE", "SHUTOFF", "ERROR"}
RUNNING, STOPPED, BROKEN = "ACTIVE", "SHUTOFF", "ERROR"
UP, DISABLED, OFF = "up", "disabled", "off"
STATUS, DESTINATION = "status", "destination_node"


class Evacuate(ServerAction):
    """Evacuates a server from a fenced node. If the node still ran, the server would run twice.

    A node is fenced if it is switched off, if its compute service was forced down, or if a user has confirmed it
    (``fencing``). It must also be disabled, so that no server is scheduled to it when it is up again.

    The destination is a preference: if it lacks capacity, the cloud chooses. An evacuation cannot be undone.
    """

    name = "evacuate"
    description = "Build a server on another compute node in the place of its own, which is down"
    operation = "evacuate"
    schema = {
        "type": "object",
        "properties": {
            "resource_id": SERVER_SCHEMA,
            "resource_name": NAME_SCHEMA,
            "source_node": {
                **NODE_SCHEMA,
                "description": (
                    "The host name of the failed compute node, which must be down and disabled. The action is skipped "
                    "if the server is on another node."
                ),
            },
            DESTINATION: {
                "type": ["string", "null"],
                "minLength": 1,
                "description": (
                    "The host name of the destination. The cloud chooses without it, with null, and if this node "
                    "cannot take the server."
                ),
            },
            "fencing": {
                "type": "string",
                "enum": [VERIFY, CONFIRMED],
                "default": VERIFY,
                "description": (
                    "`verify`: fail unless the node is switched off or its compute service was forced down. "
                    "`confirmed`: a person has confirmed that the node is off."
                ),
            },
        },
        "required": ["resource_id", "source_node"],
        "additionalProperties": False,
    }

    @property
    def source(self) -> str:
        return str(self.input_parameters["source_node"])

    def pre_condition(self) -> None:
        server = self.server_to_act_on()
        if server.host != self.source:
            raise ActionSkipException(
                messages.NO_LONGER_ON_NODE.fill(server=self.server, source=self.source, host=server.host)
            )
        service = cloud().find_compute_service(self.source)
        if service.state == UP:
            raise ActionSkipException(self.why_needless)
        self.require_fenced(service)
        if server.status not in EVACUABLE:
            raise ActionFailed(messages.NOT_EVACUABLE_YET.fill(server=self.server, status=server.status))

    @property
    def why_needless(self) -> str:
        return messages.STAYS_ON_NODE.fill(node=self.source, server=self.server)

    def require_fenced(self, service: ComputeService) -> None:
        """Check that a node which is down is disabled and fenced.

        Raises:
            ActionFailed: it is not; the message tells users how to change that.
        """
        if service.status != DISABLED:
            raise ActionFailed(messages.NODE_ENABLED.fill(node=self.source))
        is_confirmed = self.input_parameters["fencing"] == CONFIRMED or service.forced_down
        if not is_confirmed and cloud().find_power_state(self.source) != OFF:
            raise ActionFailed(messages.NODE_NOT_FENCED.fill(node=self.source, problem=NOT_FENCED))

    def execute(self) -> Outcome:
        server = self.find()
        if server is None:
            return Outcome(Answer.CANCEL, self.not_found_message)
        if server.host == self.source:
            # Checked again, because the process that ran pre_condition may have been lost some time ago.
            service = cloud().find_compute_service(self.source)
            if service.state == UP:
                return Outcome(Answer.CANCEL, self.why_needless)
            self.require_fenced(service)
            if STATUS not in self.context.data:
                self.context.save_data({STATUS: server.status})
            self.move()
            server = cloud().find_server(self.server)
        self.require_arrival(server)
        if self.is_to_be_stopped(server):
            cloud().stop(self.server, self.context.checkpoint)
        return DONE

    def foresee(self) -> Outcome:
        return self.execute()

    def move(self) -> None:
        """Evacuate the server to the requested destination, else to a node that the cloud chooses."""
        if destination := self.find_destination():
            try:
                return cloud().evacuate(self.server, destination, self.context.checkpoint)
            except NoValidHost:
                self.context.checkpoint()
        return cloud().evacuate(self.server, None, self.context.checkpoint)

    def find_destination(self) -> str | None:
        """Return the requested destination, or None if there is none, or if it is down or disabled."""
        requested = self.input_parameters.get(DESTINATION)
        if requested in {None, self.source}:
            return None
        try:
            service = cloud().find_compute_service(str(requested))
        except ComputeServiceNotFound:
            return None
        return str(requested) if service.state == UP and service.status != DISABLED else None

    def require_arrival(self, server: CloudServer) -> None:
        """Check that the server is healthy on another node, and store that node as an output.

        Raises:
            ActionFailed: it is not.
        """
        if server.status == BROKEN or server.host in {None, self.source}:
            values = {"server": self.server, "status": server.status, "host": server.host, "source": self.source}
            raise ActionFailed(messages.NOT_EVACUATED.fill(**values))
        self.context.outputs[DESTINATION] = server.host

    def is_to_be_stopped(self, server: CloudServer) -> bool:
        """Return whether a server that was stopped before runs, because a repeated evacuation found it in ERROR."""
        return self.context.data.get(STATUS) == STOPPED and server.status == RUNNING

    def abort(self) -> bool:
        """Wait for the end of the evacuation, which the cloud continues."""
        try:
            server = cloud().reconcile(self.server, self.context.checkpoint)
        except ServerNotFound:
            return True
        if server.host == self.source:
            return True
        self.require_arrival(server)
        return False

    def recover(self) -> Recovery:
        try:
            server = cloud().reconcile(self.server, self.context.checkpoint)
        except ServerNotFound:
            return Recovery.DONE
        if server.host == self.source:
            return Recovery.AGAIN
        self.require_arrival(server)
        return Recovery.AGAIN if self.is_to_be_stopped(server) else Recovery.DONE
