"""Build a server that never ran."""

from actions.types import messages
from actions.types.base import DONE, ActionSkipException, Answer, Outcome, Recovery
from actions.types.servers.servers import ServerAction
from cluster.drivers.base import ServerNotFound, cloud

RUNNING, BUILDING = "ACTIVE", "BUILD"


class Build(ServerAction):
    """Builds a server that never ran and is PENDING or in ERROR. It cannot be aborted."""

    name = "build"
    description = "Build a server that has not run yet"
    operation = "create"

    def pre_condition(self) -> None:
        if self.server_to_act_on().has_run:
            raise ActionSkipException(messages.BUILT_ALREADY.fill(server=self.server))

    def execute(self) -> Outcome:
        try:
            self.build()
        except ServerNotFound:
            return Outcome(Answer.CANCEL, self.not_found_message)
        return DONE

    def build(self) -> None:
        cloud().build_server(self.server, self.context.checkpoint)

    def foresee(self) -> Outcome:
        return self.execute()

    def clean_up(self) -> None:
        """Set a server whose build was interrupted to ERROR, because no action will build it."""
        server = self.find()
        if server and server.status == BUILDING:
            cloud().reset_state(self.server, "error", reason=messages.BUILD_INTERRUPTED.text, expected=BUILDING)

    def recover(self) -> Recovery:
        """Continue a build that has begun, unless the server was deleted or runs."""
        server = self.find()
        return Recovery.DONE if server is None or server.has_run else Recovery.AGAIN
