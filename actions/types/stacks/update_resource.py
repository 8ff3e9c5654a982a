"""Update a resource of a stack to its template."""

from collections.abc import Sequence

from django.db.models import Model

from actions.types.base import Outcome
from actions.types.nodes.server_changes import resize
from actions.types.stacks.resources import ResourceAction, change_metadata, delete_generation, delete_server
from actions.types.stacks.status import begin_stack, end_stack, former_stacks, remove_empty
from cluster.drivers.base import cloud
from cluster.models import StackResource
from cluster.models.stacks import IN_PROGRESS, Verb
from cluster.stacks.changes import changed_properties

# Nova's names of the operations that change a property.
OPERATIONS = {"image": "rebuild", "flavor": "resize"}


class UpdateResource(ResourceAction):
    """Resize or rebuild a server and set its metadata, or update a nested stack.

    The resources of a nested stack are changed, replaced, created and deleted.
    """

    name = "update_resource"
    description = "Updating a resource of a stack"
    verb = Verb.UPDATE

    def begun(self, resource: StackResource) -> Sequence[Model]:
        if resource.is_nesting:
            return ()
        differing = changed_properties(resource.properties, self.definition_of(resource)["properties"])
        name = next((OPERATIONS[part] for part in differing if part in OPERATIONS), "")
        return self.operation(name, resource.physical_id) if name else ()

    def begin_within(self, resource: StackResource) -> None:
        if nested := self.change.nested:
            begin_stack(nested, Verb.UPDATE)

    def act(self, resource: StackResource) -> Outcome:
        change = self.change
        if outcome := self.next_step([*change.steps, change.clearing], change.pause):
            return outcome
        remove_empty(former_stacks(resource))
        if resource.status in IN_PROGRESS:
            self.delete_leftovers(resource)
        if change.nested:
            end_stack(change.nested, self.left_out)
        elif resource.status in IN_PROGRESS:
            self.change_server(resource)
        return self.finish(resource)

    def delete_leftovers(self, resource: StackResource) -> None:
        """Delete the servers that a failed replacement left: the former one, or a new one whose id was not stored."""
        delete_server(resource.former_physical_id)
        resource.former_physical_id = None
        if self.may_have_leftovers:
            delete_generation(resource, resource.generation + 1)

    def change_server(self, resource: StackResource) -> None:
        """Change the server to its properties in the template. Raises: `CloudError`."""
        properties, server = self.definition_of(resource)["properties"], str(resource.physical_id)
        differing = changed_properties(resource.properties, properties)
        if "image" in differing:
            cloud().rebuild_server(server, properties["image"], self.context.checkpoint)
        if "flavor" in differing:
            resize(server, properties["flavor"], self)
        if "metadata" in differing:
            change_metadata(server, resource.properties, properties)

    def abort(self) -> bool:
        """Set the resource to failed; the server that was being changed stays."""
        resource = self.find()
        if resource is None or resource.status not in IN_PROGRESS:
            return False
        if not self.change.nested:
            cloud().reconcile(str(resource.physical_id))
        return super().abort()
