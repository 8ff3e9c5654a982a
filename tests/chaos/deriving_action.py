"""An action type that only derives other actions."""

from typing import Any, ClassVar

from actions.graph.proposals import ProposedAction
from actions.types.base import ActionType, Answer, Outcome, Recovery


class MoveServers(ActionType):
    """Migrates all servers but the last at the same time, and then the last one."""

    name = "move_servers"
    description = "Moves servers, each by an action of its own"
    schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {"servers": {"type": "array"}, "destination_node": {"type": "string"}},
    }

    def execute(self) -> Outcome:
        migrations = [self.propose_migration(server) for server in self.input_parameters["servers"][:-1]]
        last = self.propose_migration(self.input_parameters["servers"][-1], migrations)
        return Outcome(Answer.WAIT, "one server each", [*migrations, last])

    def propose_migration(self, server: str, parents: list[ProposedAction] | None = None) -> ProposedAction:
        hosts = {"source_node": "one", "destination_node": self.input_parameters["destination_node"]}
        parameters = {"resource_id": server, "migration_type": "live", **hosts}
        return ProposedAction("migrate", parameters, [parent.uuid for parent in parents or ()])

    def abort(self) -> bool:
        return True

    def recover(self) -> Recovery:
        return Recovery.AGAIN
