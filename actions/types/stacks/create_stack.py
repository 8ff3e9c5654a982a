"""Create the resources of a new stack."""

from actions.types.stacks.stacks import StackAction
from cluster.models import Stack
from cluster.models.stacks import Verb
from cluster.stacks.changes import decide
from cluster.stacks.current import CurrentStack
from cluster.stacks.decisions import Decision


class CreateStack(StackAction):
    """Creates resources. If some fail, the stack keeps the others, and can be updated or deleted.

    In a plan that continues its plan, missing resources are created, and failed ones are replaced.
    """

    name = "create_stack"
    description = "Creating the resources of a stack"
    verb = Verb.CREATE

    def decide(self, stack: Stack, current: CurrentStack) -> Decision:
        return decide(current, stack.template)
