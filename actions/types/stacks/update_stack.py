"""Update a stack to its template, or to another one."""

from actions.types.nodes.nodes import schema_of
from actions.types.stacks.stacks import StackAction
from cluster.models import Stack
from cluster.models.stacks import MAX_TIMEOUT, Verb
from cluster.stacks.changes import decide
from cluster.stacks.current import CurrentStack
from cluster.stacks.decisions import Decision, Template
from cluster.stacks.templates.templates import normalise

TIMEOUT = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_TIMEOUT,
    "description": "The timeout of this and later operations on the stack, in minutes. By default unchanged.",
}


class UpdateStack(StackAction):
    """Updates resources to the template, and replaces resources that a user marked unhealthy or that failed."""

    name = "update_stack"
    description = "Updating a stack"
    schema = schema_of(
        template={
            "type": "object",
            "description": "The new template. By default the current one, which replaces resources marked unhealthy.",
        },
        timeout_mins=TIMEOUT,
    )
    verb = Verb.UPDATE

    def decide(self, stack: Stack, current: CurrentStack) -> Decision:
        return decide(current, self.template(stack))

    def template(self, stack: Stack) -> Template:
        """Return the given template, else the current one of the stack. Raises: `Invalid`."""
        document = self.input_parameters.get("template")
        return stack.template if document is None else normalise(document)
