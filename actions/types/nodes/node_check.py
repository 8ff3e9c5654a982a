"""Check whether the server of a node runs."""

from actions.types import messages
from actions.types.base import DONE, ActionFailed, ActionSkipException, Outcome, Recovery
from actions.types.nodes.nodes import NodeAction
from cluster.drivers.base import ServerNotFound, cloud
from cluster.models import Node

RUNNING = "ACTIVE"


class NodeCheck(NodeAction):
    """Sets the status of a node from its server. The action succeeds with any result of the check."""

    name = "NODE_CHECK"
    description = "Checking whether the server of a node runs"

    def pre_condition(self) -> None:
        node = self.node_to_act_on()
        if node.status == Node.Status.INIT:
            raise ActionSkipException(messages.NEVER_CREATED.fill(node=self.uuid))

    def act(self) -> Outcome:
        node = self.node()
        if node.status in Node.IN_PROGRESS:
            raise ActionFailed(messages.NODE_BUSY.fill(node=self.uuid, status=node.status))
        if problem := find_problem(node):
            self.change(node, node.fail_check, problem)
        else:
            self.change(node, node.pass_check)
        self.context.outputs["status"] = node.status
        return DONE

    def abort(self) -> bool:
        return True

    def revert(self) -> bool:
        """Return true, because a check has no effect to undo."""
        return True

    def recover(self) -> Recovery:
        return Recovery.AGAIN


def find_problem(node: Node) -> str | None:
    """Return the problem of a node's server, or None. A user's mark takes precedence."""
    if node.unhealthy_reason is not None:
        return messages.MARKED_UNHEALTHY.fill(reason=node.unhealthy_reason)
    if node.physical_id is None:
        return messages.WITHOUT_SERVER.text
    try:
        server = cloud().find_server(str(node.physical_id))
    except ServerNotFound:
        return messages.SERVER_MISSING.fill(uuid=node.physical_id)
    return None if server.status == RUNNING else messages.SERVER_IN_STATUS.fill(uuid=server.uuid, status=server.status)
