"""Create what is in a new stack."""

from actions.types.stacks.stacks import StackAction
from cluster.models import Stack
from cluster.models.stacks import Verb
from cluster.stacks.changes import decide
from cluster.stacks.current import CurrentStack
from cluster.stacks.decisions import Decision


class CreateStack(StackAction):
    """A stack whose creation failed half-way has what came to be, and can be updated or deleted.

    Where its plan is continued, what is missing is created, and what failed is replaced.
    """

    name = "create_stack"
    description = "Creating the resources of a stack"
    verb = Verb.CREATE

    def decide(self, stack: Stack, current: CurrentStack) -> Decision:
        return decide(current, stack.template)
