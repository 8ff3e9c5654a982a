"""Replace the server, or the stack, of a resource.

If a user requested the action, it takes shared locks on the root stack and on the resources that contain its
resource, and an exclusive lock on its resource. At the end it updates the status of the stacks that contain the
resource.
"""

from contextlib import suppress

from django.db import transaction

from actions.types import messages
from actions.types.base import ActionFailed, ActionSkipException, Answer, Outcome
from actions.types.locking import Lockable, require_known, require_unlocked, take_locks
from actions.types.nodes.nodes import atomic_unless_simulated, schema_of
from actions.types.stacks.resources import ResourceAction, change_metadata, delete_generation, delete_server
from actions.types.stacks.status import (
    begin_operation,
    begin_stack,
    end_stack,
    end_with_success,
    former_stacks,
    remove_empty,
    write_part,
)
from actions.types.stacks.steps import CHANGE
from cluster.drivers.base import NoValidHost, ServerNotFound, cloud
from cluster.models import Stack, StackResource, StackStatus
from cluster.models.stacks import FAILED, IN_PROGRESS, Verb
from cluster.simulated import simulated_cloud
from cluster.stacks import decisions
from cluster.stacks.changes import changed_properties, decide_replacement, is_changeable
from cluster.stacks.current import CurrentResource, CurrentStack, read_tree

CLEARED = "cleared"
"""The key in an action's data that is set when servers of earlier failed replacements have been deleted."""
IN_PLACE = "in_place"
"""The key in an action's data and outputs that is set if the server is rebuilt on its host."""

# The statuses in which both clouds rebuild a server.
REBUILDABLE = ("ACTIVE", "SHUTOFF", "ERROR")


class ReplaceResource(ResourceAction):
    """Creates the new server, then stores its UUID in the resource, then deletes the former server.

    The resource keeps its name and its row. A marked resource whose replacement fails stays marked. If no action on
    the stack derived the action, it takes locks and decides itself (`lock_and_decide`).

    If no host has capacity for a new server, and the former server has the same flavor and zone, the former server is
    rebuilt on its host, which requires no additional capacity.
    """

    name = "replace_resource"
    description = "Replacing a resource of a stack"
    schema = schema_of(
        expected_status={
            "type": "string",
            "enum": StackStatus.values,
            "description": "The required status of the resource. The action is skipped in any other status.",
        }
    )
    verb = Verb.UPDATE
    takes_locks = True

    def pre_condition(self) -> None:
        resource = self.find()
        if resource is None:
            raise ActionSkipException(self.not_found_message)
        if self.status_before is not None:
            return
        if CHANGE in self.context.data and self.is_done(resource):
            raise ActionSkipException(messages.RESOURCE_REPLACED.fill(resource=self.uuid))
        expected = self.input_parameters.get("expected_status")
        if expected and resource.status != expected:
            values = {"resource": self.uuid, "status": resource.status, "expected": expected}
            raise ActionSkipException(messages.OTHER_RESOURCE_STATUS.fill(**values))

    def is_done(self, resource: StackResource) -> bool:
        """Return whether the replacement exists, and the former counterpart was deleted."""
        ahead = resource.generation - self.change.generation
        return ahead > 0 or (ahead == 0 and resource.former_physical_id is None)

    def execute(self) -> Outcome:
        if not self.context.is_derived and (retry := lock_and_decide(self)):
            return retry
        return super().execute()

    def begin_within(self, resource: StackResource) -> None:
        if self.change.nested:
            begin_stack(self.change.nested, Verb.CREATE)

    def act(self, resource: StackResource) -> Outcome:
        change = self.change
        if resource.generation < change.generation:
            if outcome := self.next_step(change.steps, change.pause):
                return outcome
            self.switch_over(resource)
        if resource.former_physical_id:
            delete_server(resource.former_physical_id)  # Without effect if it is the id of a stack.
        if outcome := self.next_step([*change.steps, change.clearing]):
            return outcome
        if problem := remove_empty(former_stacks(resource)):
            raise ActionFailed(problem)
        resource.former_physical_id = None
        return self.finish(resource)

    def switch_over(self, resource: StackResource) -> None:
        """Create the new counterpart, and store its id in the resource. Raises: `CloudError`."""
        change = self.change
        self.delete_leftovers(resource)
        if change.nested:
            end_stack(change.nested, self.left_out)
            counterpart = change.nested
        else:
            counterpart = self.make_or_rebuild(resource)
        records = [] if change.nested else self.operation("rebuild" if self.is_in_place else "create", counterpart)
        if not resource.is_nesting and not self.is_in_place:
            records += self.operation("delete", resource.physical_id)
        resource.set_counterpart(counterpart, change.generation)
        resource.type = self.definition_of(resource)["type"]
        write_part(resource, records)

    @property
    def is_in_place(self) -> bool:
        return bool(self.context.data.get(IN_PLACE))

    def make_or_rebuild(self, resource: StackResource) -> str:
        """Create a new server, or rebuild the former one in place, and return its UUID. Raises: `CloudError`."""
        if not self.is_in_place:
            can_rebuild = self.can_rebuild(resource)
            try:
                return self.create_generation(resource, may_wait=not can_rebuild)
            except NoValidHost:
                if not can_rebuild:
                    raise
            # Saved before the rebuild, after which no other server may be created instead.
            self.context.save_data({**self.context.data, IN_PLACE: True})
        server, properties = str(resource.physical_id), self.definition_of(resource)["properties"]
        cloud().rebuild_server(server, properties["image"], self.context.checkpoint)
        change_metadata(server, resource.properties, properties)
        self.context.outputs[IN_PLACE] = True
        return server

    def can_rebuild(self, resource: StackResource) -> bool:
        """Return whether rebuilding the former server has the same result as creating a new one."""
        definition = self.definition_of(resource)
        if resource.is_nesting or definition["type"] != resource.type or resource.physical_id is None:
            return False
        differing = changed_properties(resource.properties, definition["properties"])
        if {"flavor", "availability_zone"}.intersection(differing) or not is_changeable(
            differing, definition["properties"]
        ):
            return False
        with suppress(ServerNotFound):
            server = cloud().find_server(resource.physical_id)
            return server.has_run and server.task_state is None and server.status in REBUILDABLE
        return False

    def delete_leftovers(self, resource: StackResource) -> None:
        """Delete servers that earlier failed operations left, before their ids are overwritten."""
        delete_server(resource.former_physical_id)
        if resource.physical_id is None:
            delete_generation(resource, resource.generation)
        if self.may_have_leftovers and not self.context.data.get(CLEARED):
            # It has the token of the new server, and would be used instead.
            delete_generation(resource, self.change.generation)
            self.context.save_data({**self.context.data, CLEARED: True})

    def fail(self, reason: str) -> None:
        with atomic_unless_simulated():
            self.keep_mark(reason)

    def keep_mark(self, reason: str) -> None:
        """Keep the mark of a resource that was not replaced."""
        resource = self.find()
        if resource is None or self.status_before is None or resource.status not in IN_PROGRESS:
            return
        super().fail(reason)
        if self.status_before == StackStatus.CHECK_FAILED and resource.generation < self.change.generation:
            failed = self.resource()
            failed.mark_unhealthy(messages.NOT_REPLACED.fill(reason=reason))
            write_part(failed)

    def post_condition(self) -> None:
        super().post_condition()
        if not self.context.is_derived and simulated_cloud() is None and (resource := self.find()):
            settle_above(resource)

    def abort(self) -> bool:
        """Delete the new server; if the resource refers to it already, complete the replacement."""
        resource = self.find()
        if resource is None or resource.status not in IN_PROGRESS:
            return False
        if not self.change.nested and resource.generation >= self.change.generation:
            self.act(resource)
            return False
        if self.is_in_place:
            cloud().reconcile(str(resource.physical_id))
        elif not self.change.nested:
            delete_generation(resource, self.change.generation)
        return super().abort()


def lock_and_decide(action: ReplaceResource) -> Outcome | None:
    """Take the locks and decide, unless that was done; return a RETRY if another action or operation conflicts.

    Raises:
        ActionFailed: the resource is being deleted, or was deleted.
    """
    resource = action.resource()
    parents = holders(resource)
    shared: list[tuple[Lockable, bool]] = [(record, False) for record in parents]
    if model := simulated_cloud():
        require_known(model, resource.stack.root or resource.stack)
        require_unlocked(model, action.context.action_uuid, [*shared, (resource, True)])
    elif conflict := take_locks(action.context.action_uuid, [*shared, (resource, True)]):
        return conflict
    if CHANGE not in action.context.data:
        try:
            action.pre_condition()  # Before the lock, another action might have changed it.
        except ActionSkipException as superfluous:
            return Outcome(Answer.RETRY, str(superfluous))
        decide_standalone(action, action.resource())
    return None


def holders(resource: StackResource) -> list[Stack | StackResource]:
    """Return the root stack and the resources that contain a resource, the outermost first."""
    parents: list[Stack | StackResource] = []
    stack = resource.stack
    while stack.parent_resource:
        parents.insert(0, stack.parent_resource)
        stack = stack.parent_resource.stack
    return [stack, *parents]


def decide_standalone(action: ReplaceResource, resource: StackResource) -> None:
    with atomic_unless_simulated():
        write_decision(action, resource, find_root(resource))


def find_root(resource: StackResource) -> Stack | None:
    """Lock and return the root stack of a resource, or None if it was deleted."""
    if simulated_cloud():
        return resource.stack.root or resource.stack
    root: Stack | None = (
        Stack.objects.present().select_for_update(no_key=True).filter(pk=resource.stack.root_key).first()
    )
    return root


def write_decision(action: ReplaceResource, resource: StackResource, root: Stack | None) -> None:
    if root is None or resource.verb == Verb.DELETE:
        raise ActionFailed(messages.RESOURCE_BEING_DELETED.fill(resource=resource.name))
    if resource.name not in resource.stack.template["resources"]:
        raise ActionFailed(messages.RESOURCE_NOT_IN_TEMPLATE.fill(resource=resource.name))
    model = simulated_cloud()
    if model:
        current = model.stacks.resource(resource)
    else:
        current = next(
            candidate for candidate in all_resources(read_tree(root)) if candidate.uuid == str(resource.uuid)
        )
    decision = decide_replacement(current, resource.stack.name, action.definition_of(resource))
    if model:
        model.stacks.write(root, decision)
    else:
        decisions.write_decision(root, decision)
    if decision.changes[0].nested:
        # Earlier plans refer to the replaced nested stack, and become stale.
        root.revision += 1
        write_part(root)
    action.context.save_data({**action.context.data, CHANGE: decision.changes[0].as_data()})


def all_resources(stack: CurrentStack) -> list[CurrentResource]:
    """Return the resources of a stack, at any depth."""
    inner = [resource for part in stack.resources for nested in part.within for resource in all_resources(nested)]
    return [*stack.resources, *inner]


@transaction.atomic
def settle_above(replaced: StackResource) -> None:
    """Reset the failed status of the stacks and resources that contain a resource.

    This is done only if everything within is healthy and matches the templates. A user's mark stays. If several
    actions end at the same time, the last one reads the results of the others.
    """
    Stack.objects.select_for_update(no_key=True).get(pk=replaced.stack.root_key)
    resource: StackResource | None = StackResource.objects.select_related("stack").get(pk=replaced.pk)
    while resource is not None:
        stack = resource.stack
        if not is_whole(stack):
            return
        clear_failure(stack)
        resource = stack.parent_resource
        if resource is not None and resource.status in FAILED and not resource.is_marked:
            # The stack within now matches the template, as after an update of the resource.
            resource.properties = resource.stack.template["resources"][resource.name]["properties"]
            clear_failure(resource)


def clear_failure(part: Stack | StackResource) -> None:
    if part.status in FAILED and not part.is_marked:
        begin_operation(part, Verb.UPDATE)
        end_with_success(part)


def is_whole(stack: Stack) -> bool:
    """Return whether a stack has exactly the resources of its template, and all of them are healthy."""
    parts = list(stack.resources.present())
    definitions = stack.template["resources"]
    return {part.name for part in parts} == set(definitions) and all(
        part.status.endswith("_COMPLETE")
        and part.status != StackStatus.INIT_COMPLETE
        and part.properties == definitions[part.name]["properties"]
        for part in parts
    )
