"""The base class of actions on single resources of a stack, and operations on their servers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from django.db.models import Model

from actions.models import Action
from actions.types import messages
from actions.types.base import DONE, ActionContext, ActionFailed, ActionSkipException, Outcome, Recovery, explain, make
from actions.types.nodes.nodes import atomic_unless_simulated, schema_of
from actions.types.stacks.status import begin_operation, end_with_success, fail_in_progress, stacks_within
from actions.types.stacks.steps import CHANGE, Stepping
from cluster.drivers import server_properties
from cluster.drivers.base import (
    Checkpoint,
    CloudBusy,
    CloudError,
    NewServer,
    ServerNotFound,
    WaitingForCapacity,
    cloud,
    load_driver,
)
from cluster.models import Server, Stack, StackResource, StackStatus, Trust
from cluster.models.stacks import IN_PROGRESS, Verb
from cluster.operations.servers import delete_unplaced
from cluster.simulated import simulated_cloud
from cluster.stacks.decisions import Change
from watcher_site.refusals import NotFound

WAITS_FOR = "waits_for"
"""The key in an action's data of the UUID of its PENDING server."""
BEGUN = "begun"
"""The key in an action's data of the status of the resource before the action."""
# The statuses after which earlier operations have left no servers.
WELL_ENDED = (StackStatus.INIT_COMPLETE, StackStatus.CREATE_COMPLETE, StackStatus.UPDATE_COMPLETE)


class ResourceAction(Stepping, ABC):
    """An action on one resource, ``resource_id``. Its ``resource_name`` is for users.

    An action on the stack derives it, holds the lock, and has stored the template with the description of the
    resource.
    """

    schema = schema_of()
    inherits_foresight = True
    verb: ClassVar[Verb]

    @abstractmethod
    def act(self, resource: StackResource) -> Outcome:
        """Perform the operation on a resource. It may be called again if it was completed in part or in whole."""

    @property
    def uuid(self) -> str:
        return str(self.input_parameters["resource_id"])

    @property
    def not_found_message(self) -> str:
        return messages.RESOURCE_NOT_FOUND.fill(resource=self.uuid)

    @property
    def change(self) -> Change:
        """Return the decided change."""
        return Change.read(self.context.data[CHANGE])

    def find(self) -> StackResource | None:
        """Return the current resource, or None if it was deleted, with one query."""
        if model := simulated_cloud():
            return model.stacks.find_resource(self.uuid)
        # Templates may be large, and are loaded only if they are used.
        resources = StackResource.objects.present().select_related("stack").defer("stack__template")
        resource: StackResource | None = resources.filter(uuid=self.uuid).first()
        return resource

    def resource(self) -> StackResource:
        """Return the current resource. Raises: `ActionFailed` if it was deleted."""
        resource = self.find()
        if resource is None:
            raise ActionFailed(self.not_found_message)
        return resource

    def definition_of(self, resource: StackResource) -> Mapping[str, Any]:
        """Return the description of a resource in the template of its stack."""
        definition: Mapping[str, Any] = resource.stack.template["resources"][resource.name]
        return definition

    @property
    def status_before(self) -> str | None:
        """Return the status of the resource before the action, or None if the action has not begun."""
        return self.context.data.get(BEGUN)

    @property
    def may_have_leftovers(self) -> bool:
        """Return whether an earlier operation failed, and may have left servers without a reference to them."""
        return self.status_before not in WELL_ENDED

    def pre_condition(self) -> None:
        if CHANGE not in self.context.data:
            raise ActionFailed(messages.PART_OF_OPERATION.text)
        if self.find() is None:
            raise ActionSkipException(self.not_found_message)

    def execute(self) -> Outcome:
        resource = self.find()
        if resource is None:
            return DONE
        if self.status_before is None:
            self.begin(resource)
        return self.go_on()

    def foresee(self) -> Outcome:
        return self.execute()

    def begin(self, resource: StackResource) -> None:
        """Write the beginning. Raises: `ActionFailed` if another operation on the resource is in progress."""
        with atomic_unless_simulated():
            self.context.save_data({**self.context.data, BEGUN: resource.status})
            begin_operation(resource, self.verb, self.begun(resource))
            self.begin_within(resource)

    def begun(self, resource: StackResource) -> Sequence[Model]:
        """Return the records of the operations on servers that begin with the action: see `operation`."""
        return ()

    def operation(self, name: str, *servers: str | None) -> list[Model]:
        """Return unsaved records of an operation, by Nova's name, on these servers, ignoring None."""
        return [record for server in servers if server for record in self.context.new_operation(server, name)]

    def begin_within(self, resource: StackResource) -> None:
        """Write the beginning of the operation on the stack within, in the same transaction."""

    def go_on(self) -> Outcome:
        resource = self.find()
        if resource is None:
            return DONE
        if resource.is_failed:
            # The worker died after it wrote the failure and before the end of the action.
            raise ActionFailed(resource.status_reason)
        try:
            return self.act(resource)
        except CloudBusy:
            raise
        except (CloudError, ActionFailed) as problem:
            self.fail(explain(problem))
            raise

    def create_generation(self, resource: StackResource, *, may_wait: bool = True) -> str:
        """Create the new server of a resource, and return its UUID.

        Args:
            may_wait: as in `create_server`.

        Raises:
            CloudError: the creation failed.
            WaitingForCapacity: the server is PENDING.
            ActionFailed: the server was PENDING, and was deleted meanwhile.
        """
        waits_for = self.context.data.get(WAITS_FOR)
        if waits_for and not is_present(waits_for):
            raise ActionFailed(messages.DELETED_WHILE_WAITING.fill(server=waits_for))
        try:
            definition, generation = self.definition_of(resource), self.change.generation
            return create_server(resource, definition, generation, self.context.checkpoint, may_wait=may_wait)
        except WaitingForCapacity as waiting:
            self.context.save_data({**self.context.data, WAITS_FOR: waiting.server})
            raise

    def finish(self, resource: StackResource, records: Sequence[Model] = ()) -> Outcome:
        """Store that the resource matches its template, unless that was stored before."""
        if resource.status in IN_PROGRESS:
            definition = self.definition_of(resource)
            resource.type, resource.properties = definition["type"], definition["properties"]
            end_with_success(resource, self.left_out if self.change.nested else (), records)
        self.context.outputs.update(physical_id=resource.physical_id, generation=resource.generation)
        return DONE

    def stop_with_failure(self, reason: str) -> Outcome:
        self.fail(reason)
        return Outcome(DONE.answer, reason)

    def fail(self, reason: str) -> None:
        """Set the resource, and the stacks within, to failed if they are still in progress."""
        resource = self.find()
        if resource is None or self.status_before is None:
            return
        for stack in stacks_within(resource):
            fail_in_progress(stack, reason)
        fail_in_progress(resource, reason)
        if WAITS_FOR in self.context.data:
            delete_pending_server(resource, self.change.generation)

    def be_given_up(self, reason: str) -> None:
        self.fail(reason)

    def post_condition(self) -> None:
        """Set a resource that is still in progress to failed, for example after too many retries."""
        self.fail(messages.NOT_COMPLETED.fill(operation=self.verb))

    def abort(self) -> bool:
        """Set the resource to failed. The derived actions have ended, and their results stay."""
        self.fail(messages.OPERATION_INTERRUPTED.fill(operation=self.verb))
        return True

    def recover(self) -> Recovery:
        return Recovery.AGAIN


def create_server(
    resource: StackResource,
    definition: Mapping[str, Any],
    generation: int,
    checkpoint: Checkpoint,
    *,
    may_wait: bool = True,
) -> str:
    """Create the server of a generation, and return its UUID. Repeated calls create no second server.

    Args:
        may_wait: whether the server may be PENDING for lack of capacity, if the site allows that.

    Raises:
        CloudError: the creation failed.
        WaitingForCapacity: the server is PENDING.
    """
    properties = definition["properties"]
    server = NewServer(
        name=resource.server_name,
        flavor=properties["flavor"],
        token=resource.token(generation),
        image=properties["image"],
        metadata=properties["metadata"],
        zone=properties["availability_zone"],
        project=resource.stack.project_id,
        user=resource.stack.user_id,
        trust=find_trust(resource.stack),
        properties=server_properties.select_properties(properties),
        may_wait=may_wait,
    )
    return cloud().create_server(server, checkpoint).uuid


def find_trust(stack: Stack) -> str:
    """Return Keystone's id of the trust by which a stack's servers are created, or "" if none is needed or exists.

    A preflight reads the trust of each root stack once.
    """
    if not stack.project_id or not load_driver().is_mirrored:
        return ""

    def read() -> str:
        keys = Trust.objects.filter(stacks=stack.root_key).values_list("keystone_id", flat=True)
        return keys.first() or ""

    model = simulated_cloud()
    return model.members.read_once(("trust", str(stack.root_key)), read) if model else read()


def change_metadata(server: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Change the metadata of a server if its properties differ. Raises: `CloudError`."""
    former = before.get("metadata") or {}
    if former != after["metadata"]:
        cloud().change_metadata(server, after["metadata"], sorted(set(former).difference(after["metadata"])))


def delete_server(server: str | None) -> None:
    """Delete a server if it exists. Raises: `CloudError`."""
    if server:
        with suppress(ServerNotFound):
            cloud().delete_server(server)


def is_present(server: str) -> bool:
    """Return whether a server exists, which may be PENDING."""
    if model := simulated_cloud():
        return server in model.stacks.servers
    return bool(Server.objects.present().filter(uuid=server).exists())


def delete_pending_server(resource: StackResource, generation: int) -> None:
    """Delete the server of a generation if it is still PENDING, without requests to the cloud."""
    if simulated_cloud():
        return  # The simulated cloud has no PENDING servers.
    for server in Server.objects.waiting().filter(token=resource.token(generation)):
        with suppress(NotFound):
            delete_unplaced(server)


def delete_generation(resource: StackResource, generation: int) -> None:
    """Delete the server of a generation, if it exists, even if its UUID was not recorded."""
    server = cloud().find_created(resource.server_name, resource.token(generation), resource.stack.project_id)
    delete_server(server.uuid if server else None)


def settle_abandoned(root: Stack) -> None:
    """Write the result to each resource of a tree whose action the engine failed: one query if there is none.

    Such an action hung, or was recovered too often. The status of its resource is still in progress, and has replaced
    a user's mark. The caller holds the lock of the stack, so that no other action changes it.
    """
    rows = StackResource.objects.present().tree(root).filter(status__in=IN_PROGRESS)
    targets = [str(uuid) for uuid in rows.values_list("uuid", flat=True)]
    ended = Action.objects.filter(target__in=targets, state__in=Action.FINAL) if targets else Action.objects.none()
    last = {action.target: action for action in ended.order_by("pk") if BEGUN in (action.data or {})}
    for action in last.values():
        context = ActionContext(str(action.uuid), data=action.data, is_derived=True)
        make(action.action_type, action.input_parameters, context).post_condition()
