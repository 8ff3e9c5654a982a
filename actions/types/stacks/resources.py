"""The base of the actions on single resources of a stack: the resource, its server, and its status."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from django.db.models import Model

from actions.models import Action
from actions.types.base import DONE, ActionContext, ActionFailed, ActionSkipException, Outcome, Recovery, explain, make
from actions.types.nodes.nodes import schema_of, written_together
from actions.types.stacks.status import begin_operation, end_well, fail_under_way, stacks_within
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
"""The key in an action's data of the UUID of its server that found no host, and is PENDING."""
BEGUN = "begun"
"""The key in an action's data of the status that the resource had before the action began."""
# The statuses after which nothing is left of earlier work; a check is none of them.
WELL_ENDED = (StackStatus.INIT_COMPLETE, StackStatus.CREATE_COMPLETE, StackStatus.UPDATE_COMPLETE)


class ResourceAction(Stepping, ABC):
    """An action on one resource, ``resource_id``. Its ``resource_name`` is for users.

    An action on the stack derives it, holds the lock, and has written the wanted resource into the template of its
    stack.
    """

    schema = schema_of()
    inherits_foresight = True
    verb: ClassVar[Verb]

    @abstractmethod
    def act(self, resource: StackResource) -> Outcome:
        """Carry out the operation on a resource. May be called again if it was completed in part or whole."""

    @property
    def uuid(self) -> str:
        return str(self.input_parameters["resource_id"])

    @property
    def gone(self) -> str:
        return f"Resource {self.uuid} not found"

    @property
    def change(self) -> Change:
        """Return the decided change."""
        return Change.read(self.context.data[CHANGE])

    def find(self) -> StackResource | None:
        """Return the current resource, or None if it was deleted, with one query."""
        if model := simulated_cloud():
            return model.stacks.find_resource(self.uuid)
        # A template may be large: it is read only if it is used.
        resources = StackResource.objects.present().select_related("stack").defer("stack__template")
        found: StackResource | None = resources.filter(uuid=self.uuid).first()
        return found

    def resource(self) -> StackResource:
        """Return the current resource. Raises: `ActionFailed`, if it was deleted."""
        found = self.find()
        if found is None:
            raise ActionFailed(self.gone)
        return found

    def wanted(self, resource: StackResource) -> Mapping[str, Any]:
        """Return a resource as the template of its stack describes it."""
        wanted: Mapping[str, Any] = resource.stack.template["resources"][resource.name]
        return wanted

    @property
    def status_before(self) -> str | None:
        """Return the status that the resource had before the action began, or None if it has not begun."""
        return self.context.data.get(BEGUN)

    @property
    def may_have_left(self) -> bool:
        """Return whether earlier work failed: then servers may exist that are not in the resource's row."""
        return self.status_before not in WELL_ENDED

    def pre_condition(self) -> None:
        if CHANGE not in self.context.data:
            raise ActionFailed("It is a part of what is done to a whole stack: ask for update_stack")
        if self.find() is None:
            raise ActionSkipException(self.gone)

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
        """Write the beginning. Raises: `ActionFailed`, if another operation on the resource is in progress."""
        with written_together():
            self.context.save_data({**self.context.data, BEGUN: resource.status})
            begin_operation(resource, self.verb, self.begun(resource))
            self.begin_within(resource)

    def begun(self, resource: StackResource) -> Sequence[Model]:
        """Return the records of the operations on servers that begin with the action: see `operation`."""
        return ()

    def operation(self, name: str, *servers: str | None) -> list[Model]:
        """Return the records, not yet written, of an operation, by Nova's name, on these servers, as far as given."""
        return [record for server in servers if server for record in self.context.new_operation(server, name)]

    def begin_within(self, resource: StackResource) -> None:
        """Write the beginning of the operation on the stack within, in the same transaction."""

    def go_on(self) -> Outcome:
        resource = self.find()
        if resource is None:
            return DONE
        if resource.is_failed:
            # The worker that wrote the failure died before the action had ended.
            raise ActionFailed(resource.status_reason)
        try:
            return self.act(resource)
        except CloudBusy:
            raise
        except (CloudError, ActionFailed) as problem:
            self.fail(explain(problem))
            raise

    def make_server(self, resource: StackResource, *, may_wait: bool = True) -> str:
        """Create the new server of a resource, and return its UUID.

        Args:
            may_wait: as in `create_server`.

        Raises:
            CloudError: the cloud did not do it; or, as WaitingForCapacity, not yet.
            ActionFailed: it was PENDING, and was deleted meanwhile.
        """
        waits_for = self.context.data.get(WAITS_FOR)
        if waits_for and not is_present(waits_for):
            raise ActionFailed(f"Instance {waits_for} no longer exists: it was deleted while it waited for capacity")
        try:
            wanted, generation = self.wanted(resource), self.change.generation
            return create_server(resource, wanted, generation, self.context.checkpoint, may_wait=may_wait)
        except WaitingForCapacity as waiting:
            self.context.save_data({**self.context.data, WAITS_FOR: waiting.server})
            raise

    def finish(self, resource: StackResource, records: Sequence[Model] = ()) -> Outcome:
        """Write that the resource is as its template describes it, unless that was written before."""
        if resource.status in IN_PROGRESS:
            resource.type, resource.properties = self.wanted(resource)["type"], self.wanted(resource)["properties"]
            end_well(resource, self.left_out if self.change.nested else (), records)
        self.context.outputs.update(physical_id=resource.physical_id, generation=resource.generation)
        return DONE

    def break_off(self, reason: str) -> Outcome:
        self.fail(reason)
        return Outcome(DONE.answer, reason)

    def fail(self, reason: str) -> None:
        """Set the resource, and the stacks within, to failed if they are still in progress."""
        resource = self.find()
        if resource is None or self.status_before is None:
            return
        for stack in stacks_within(resource):
            fail_under_way(stack, reason)
        fail_under_way(resource, reason)
        if WAITS_FOR in self.context.data:
            forget_waiting(resource, self.change.generation)

    def be_given_up(self, reason: str) -> None:
        self.fail(reason)

    def post_condition(self) -> None:
        """Set a resource to failed that is still in progress, for example after too many retries."""
        self.fail(f"{self.verb} did not come to its end")

    def abort(self) -> bool:
        """Set the resource to failed. The derived actions have ended, and their results stay."""
        self.fail(f"{self.verb} was interrupted")
        return True

    def recover(self) -> Recovery:
        return Recovery.AGAIN


def create_server(
    resource: StackResource,
    wanted: Mapping[str, Any],
    generation: int,
    checkpoint: Checkpoint,
    *,
    may_wait: bool = True,
) -> str:
    """Create the server of a generation, and return its UUID; repeated calls create no second server.

    Args:
        may_wait: whether it is PENDING if no host has capacity, and the site allows servers to be PENDING.

    Raises:
        CloudError: the cloud did not do it.
        WaitingForCapacity: it found no host, and is PENDING.
    """
    properties = wanted["properties"]
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
    """Return the id of the trust by which the servers of a stack are created, if the cloud needs one and it is there.

    A preflight reads that of each root stack once.
    """
    if not stack.project_id or not load_driver().is_mirrored:
        return ""

    def read() -> str:
        keys = Trust.objects.filter(stacks=stack.root_key).values_list("keystone_id", flat=True)
        return keys.first() or ""

    model = simulated_cloud()
    return model.members.read_once(("trust", str(stack.root_key)), read) if model else read()


def change_metadata(server: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Set the metadata of a server where its properties differ. Raises: `CloudError`."""
    former = before.get("metadata") or {}
    if former != after["metadata"]:
        cloud().change_metadata(server, after["metadata"], sorted(set(former).difference(after["metadata"])))


def delete_server(server: str | None) -> None:
    """Delete a server, if it is there. Raises: `CloudError`."""
    if server:
        with suppress(ServerNotFound):
            cloud().delete_server(server)


def is_present(server: str) -> bool:
    """Return whether a server exists, also as one that waits for capacity."""
    if model := simulated_cloud():
        return server in model.stacks.servers
    return bool(Server.objects.present().filter(uuid=server).exists())


def forget_waiting(resource: StackResource, generation: int) -> None:
    """Delete the server of a generation if it is still PENDING. Only tables are read."""
    if simulated_cloud():
        return  # A preflight has no servers that wait.
    for server in Server.objects.waiting().filter(token=resource.token(generation)):
        with suppress(NotFound):
            delete_unplaced(server)


def delete_made(resource: StackResource, generation: int) -> None:
    """Delete the server of a generation, if it exists, even if its UUID was not recorded."""
    found = cloud().find_created(resource.server_name, resource.token(generation), resource.stack.project_id)
    delete_server(found.uuid if found else None)


def settle_abandoned(root: Stack) -> None:
    """Write the result to each resource of a tree whose action the engine failed: one query if there is none.

    Such an action hung, or was recovered too often. The status of its resource is still in progress, and has replaced
    a person's mark. The caller has made sure that no action works on the stack, and that none begins meanwhile.
    """
    rows = StackResource.objects.present().tree(root).filter(status__in=IN_PROGRESS)
    targets = [str(uuid) for uuid in rows.values_list("uuid", flat=True)]
    ended = Action.objects.filter(target__in=targets, state__in=Action.FINAL) if targets else Action.objects.none()
    last = {action.target: action for action in ended.order_by("pk") if BEGUN in (action.data or {})}
    for action in last.values():
        context = ActionContext(str(action.uuid), data=action.data, is_derived=True)
        make(action.action_type, action.input_parameters, context).post_condition()
