"""An action that derives others: what it does it leaves to them."""

from typing import Any, ClassVar

from actions.graph.proposals import ProposedAction
from actions.types.base import ActionType, Answer, Outcome, Recovery


class MoveServers(ActionType):
    """Migrates servers, all but the last of them at once, and then the last."""

    name = "move_servers"
    description = "Moves servers, each by an action of its own"
    schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {"servers": {"type": "array"}, "destination_node": {"type": "string"}},
    }

    def execute(self) -> Outcome:
        moves = [self.move(server) for server in self.input_parameters["servers"][:-1]]
        last = self.move(self.input_parameters["servers"][-1], moves)
        return Outcome(Answer.WAIT, "one server each", [*moves, last])

    def move(self, server: str, before: list[ProposedAction] | None = None) -> ProposedAction:
        where = {"source_node": "one", "destination_node": self.input_parameters["destination_node"]}
        parameters = {"resource_id": server, "migration_type": "live", **where}
        return ProposedAction("migrate", parameters, [one.uuid for one in before or ()])

    def abort(self) -> bool:
        return True

    def recover(self) -> Recovery:
        return Recovery.AGAIN
