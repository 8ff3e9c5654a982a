"""Create a resource of a stack."""

from actions.types import messages
from actions.types.base import ActionSkipException, Outcome
from actions.types.stacks.resources import ResourceAction, delete_generation, delete_server
from actions.types.stacks.status import (
    begin_operation,
    begin_stack,
    end_stack,
    fail_in_progress,
    former_stacks,
    remove_empty,
    save_part,
    write_part,
)
from cluster.drivers.base import WaitingForCapacity
from cluster.models import StackResource, StackStatus
from cluster.models.stacks import IN_PROGRESS, Verb


class CreateResource(ResourceAction):
    """Creates the server of a resource, or the stack within.

    The token ensures that repeated executions create only one server.
    """

    name = "create_resource"
    description = "Creating a resource of a stack"
    verb = Verb.CREATE

    def pre_condition(self) -> None:
        super().pre_condition()
        if self.status_before is None and self.resource().status not in (
            StackStatus.INIT_COMPLETE,
            StackStatus.CREATE_FAILED,
        ):
            raise ActionSkipException(messages.RESOURCE_CREATED.fill(resource=self.uuid))

    def begin_within(self, resource: StackResource) -> None:
        if nested := self.change.nested:
            begin_stack(nested, Verb.CREATE)
            resource.set_counterpart(nested, self.change.generation)
            resource.type = self.definition_of(resource)["type"]
            write_part(resource)

    def act(self, resource: StackResource) -> Outcome:
        change = self.change
        if outcome := self.next_step([*change.steps, change.clearing], change.pause):
            return outcome
        remove_empty(former_stacks(resource))
        if change.nested:
            end_stack(change.nested, self.left_out)
        elif resource.status in IN_PROGRESS:
            server = self.create_generation(resource)
            resource.set_counterpart(server, change.generation)
            return self.finish(resource, self.operation("create", server))
        return self.finish(resource)

    def create_generation(self, resource: StackResource, *, may_wait: bool = True) -> str:
        """Create the server, and store its UUID even while it is PENDING, since the resource has no other server."""
        try:
            return super().create_generation(resource, may_wait=may_wait)
        except WaitingForCapacity as waiting:
            if resource.physical_id != waiting.server:
                resource.set_counterpart(waiting.server, self.change.generation)
                save_part(resource)
            raise

    def abort(self) -> bool:
        resource = self.find()
        if resource is None or resource.status not in IN_PROGRESS:
            return False
        if not self.change.nested:
            delete_generation(resource, self.change.generation)
        return super().abort()

    def revert(self) -> bool:
        """Delete the server. The resources of a nested stack have actions of their own, which are also reverted."""
        resource = self.find()
        if resource is None or self.change.nested or resource.status != StackStatus.CREATE_COMPLETE:
            return True
        delete_server(resource.physical_id)
        begin_operation(resource, self.verb)
        resource.physical_id = None
        fail_in_progress(resource, messages.CREATION_REVERTED.text)
        return True
