"""Delete a stack with its resources."""

from actions.types.base import Answer, Outcome
from actions.types.stacks.stacks import StackAction
from actions.types.stacks.status import fail_in_progress, remove_empty
from cluster.models import Stack
from cluster.models.stacks import Verb
from cluster.stacks.changes import decide_deletion
from cluster.stacks.current import CurrentStack
from cluster.stacks.decisions import Decision


class DeleteStack(StackAction):
    """Deletes the resources of a stack, each after all that depend on it, and then the stack.

    If any remain, the message names them.
    """

    name = "delete_stack"
    description = "Deleting a stack and its resources"
    verb = Verb.DELETE

    def decide(self, stack: Stack, current: CurrentStack) -> Decision:
        return decide_deletion(current)

    def complete(self, stack: Stack) -> Outcome:
        if reason := remove_empty([stack], self.left_out):
            fail_in_progress(stack, reason)
            return Outcome(Answer.ERROR, reason)
        return Outcome(Answer.OK)
