"""Delete a resource of a stack, with what there is for it in the cloud."""

from collections.abc import Sequence

from django.db.models import Model

from actions.types.base import DONE, ActionFailed, Outcome
from actions.types.stacks.resources import ResourceAction, delete_made, delete_server
from actions.types.stacks.status import begin_operation, remove_empty, stacks_within
from cluster.models import StackResource
from cluster.models.stacks import Verb
from cluster.simulated import foreseen_cloud


class DeleteResource(ResourceAction):
    """A server whose deletion began is deleted to its end. The row goes when nothing is left of it."""

    name = "delete_resource"
    description = "Deleting a resource of a stack"
    verb = Verb.DELETE

    def begun(self, resource: StackResource) -> Sequence[Model]:
        if resource.is_nesting:
            return ()
        return self.operation("delete", resource.physical_id, resource.former_physical_id)

    def begin_within(self, resource: StackResource) -> None:
        for stack in stacks_within(resource):
            begin_operation(stack, Verb.DELETE)

    def act(self, resource: StackResource) -> Outcome:
        if outcome := self.next_step(self.change.steps):
            return outcome
        if left := remove_empty(stacks_within(resource), self.left_out):
            raise ActionFailed(left)
        delete_servers(resource, thorough=self.may_have_left)
        if model := foreseen_cloud():
            model.stacks.remove_resource(resource)
        else:
            resource.remove()
        return DONE


def delete_servers(resource: StackResource, *, thorough: bool) -> None:
    """Delete all that was made for a resource.

    Args:
        thorough: look also for such servers as nobody wrote down: after something that failed there may be some.
    """
    for server in (resource.physical_id, resource.former_physical_id):
        delete_server(server)
    if thorough:
        delete_made(resource, resource.generation)
        delete_made(resource, resource.generation + 1)
