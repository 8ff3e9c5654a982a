"""Start a server that never ran on a free host."""

from actions.types.base import DONE, ActionSkipException, Answer, Outcome, Recovery
from actions.types.servers.servers import ServerAction
from cluster.drivers.base import ServerNotFound, cloud

RUNNING, BUILDING = "ACTIVE", "BUILD"
INTERRUPTED = "Its build was interrupted too often"


class Build(ServerAction):
    """A build can not be aborted: once begun it runs to its end. A server without a host is PENDING or in ERROR."""

    name = "build"
    description = "Build a server that has not run yet"
    operation = "create"

    def pre_condition(self) -> None:
        if self.server_to_act_on().has_run:
            raise ActionSkipException(f"Instance {self.server} has been built already")

    def execute(self) -> Outcome:
        try:
            self.build()
        except ServerNotFound:
            return Outcome(Answer.CANCEL, self.gone)
        return DONE

    def build(self) -> None:
        cloud().build_server(self.server, self.context.checkpoint)

    def foresee(self) -> Outcome:
        return self.execute()

    def clean_up(self) -> None:
        """Set a server whose build was interrupted to ERROR, as no action would build it."""
        found = self.find()
        if found and found.status == BUILDING:
            cloud().reset_state(self.server, "error", reason=INTERRUPTED, expected=BUILDING)

    def recover(self) -> Recovery:
        """Continue a build that has begun, unless the server was deleted or runs."""
        found = self.find()
        return Recovery.DONE if found is None or found.has_run else Recovery.AGAIN
