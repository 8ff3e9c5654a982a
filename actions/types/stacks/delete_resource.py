"""Delete a resource of a stack, with its servers."""

from collections.abc import Sequence

from django.db.models import Model

from actions.types.base import DONE, ActionFailed, Outcome
from actions.types.stacks.resources import ResourceAction, delete_generation, delete_server
from actions.types.stacks.status import begin_operation, remove_empty, stacks_within
from cluster.models import StackResource
from cluster.models.stacks import Verb
from cluster.simulated import simulated_cloud


class DeleteResource(ResourceAction):
    """Deletes the servers of a resource, and then its row. A deletion that has begun is completed."""

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
        if problem := remove_empty(stacks_within(resource), self.left_out):
            raise ActionFailed(problem)
        delete_servers(resource, thorough=self.may_have_leftovers)
        if model := simulated_cloud():
            model.stacks.remove_resource(resource)
        else:
            resource.remove()
        return DONE


def delete_servers(resource: StackResource, *, thorough: bool) -> None:
    """Delete all servers of a resource.

    Args:
        thorough: also find servers whose UUIDs were not recorded, which a failed operation may have left.
    """
    for server in (resource.physical_id, resource.former_physical_id):
        delete_server(server)
    if thorough:
        delete_generation(resource, resource.generation)
        delete_generation(resource, resource.generation + 1)
