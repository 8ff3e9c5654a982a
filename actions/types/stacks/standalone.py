"""Stand-alone execution of an action that replaces one resource, without an action on its stack.

It shares the lock of the root stack, and of the resources that contain its resource, with other such actions, and
locks its resource exclusively. In the end it updates the status of the stacks that contain the resource.
"""

from typing import TYPE_CHECKING

from django.db import transaction

from actions.types.base import ActionFailed, ActionSkipException, Answer, Outcome
from actions.types.locking import Lockable, require_known, require_unlocked, take_locks
from actions.types.nodes.nodes import written_together
from actions.types.stacks.status import begin, end_well, write
from actions.types.stacks.steps import CHANGE
from cluster.models import Stack, StackResource, StackStatus
from cluster.models.stacks import FAILED, Verb
from cluster.simulated import foreseen_cloud
from cluster.stacks import rows
from cluster.stacks.changes import decide_replacement
from cluster.stacks.current import CurrentResource, CurrentStack, read_tree

if TYPE_CHECKING:
    from actions.types.stacks.replace_resource import ReplaceResource


def take_up(action: "ReplaceResource") -> Outcome | None:
    """Take the locks, and decide, unless that was done; return what is in the way, if anything is.

    Raises:
        ActionFailed: the resource is being deleted, or is gone.
    """
    resource = action.resource()
    above = holders(resource)
    shared: list[tuple[Lockable, bool]] = [(thing, False) for thing in above]
    if model := foreseen_cloud():
        require_known(model, resource.stack.root or resource.stack)
        require_unlocked(model, action.context.action_uuid, [*shared, (resource, True)])
    elif in_the_way := take_locks(action.context.action_uuid, [*shared, (resource, True)]):
        return in_the_way
    if CHANGE not in action.context.data:
        try:
            action.pre_condition()  # Before the lock it was somebody else's to change.
        except ActionSkipException as superfluous:
            return Outcome(Answer.RETRY, str(superfluous))
        decide(action, action.resource())
    return None


def holders(resource: StackResource) -> list[Stack | StackResource]:
    """Return the root stack, and then the resources that one is within, the outermost first."""
    found: list[Stack | StackResource] = []
    stack = resource.stack
    while stack.parent_resource:
        found.insert(0, stack.parent_resource)
        stack = stack.parent_resource.stack
    return [stack, *found]


def decide(action: "ReplaceResource", resource: StackResource) -> None:
    with written_together():
        write_decision(action, resource, find_root(resource))


def find_root(resource: StackResource) -> Stack | None:
    """Return the root stack that a resource is in, locked, unless it was deleted."""
    if foreseen_cloud():
        return resource.stack.root or resource.stack
    found: Stack | None = (
        Stack.objects.present().select_for_update(no_key=True).filter(pk=resource.stack.root_key).first()
    )
    return found


def write_decision(action: "ReplaceResource", resource: StackResource, root: Stack | None) -> None:
    if root is None or resource.verb == Verb.DELETE:
        raise ActionFailed(f"Resource {resource.name} is being deleted")
    if resource.name not in resource.stack.template["resources"]:
        raise ActionFailed(f"Resource {resource.name} is no longer in the template of its stack")
    model = foreseen_cloud()
    if model:
        standing = model.stacks.resource(resource)
    else:
        standing = next(one for one in everything(read_tree(root)) if one.uuid == str(resource.uuid))
    decision = decide_replacement(standing, resource.stack.name, action.wanted(resource))
    if model:
        model.stacks.write(root, decision)
    else:
        rows.write_decision(root, decision)
    if decision.changes[0].nested:
        # A plan that was made before knows the stack within that goes.
        root.revision += 1
        write(root)
    action.context.save_data({**action.context.data, CHANGE: decision.changes[0].as_data()})


def everything(stack: CurrentStack) -> list[CurrentResource]:
    """Return all that is in a stack, at any depth."""
    inner = [one for part in stack.resources for nested in part.within for one in everything(nested)]
    return [*stack.resources, *inner]


@transaction.atomic
def settle_above(replaced: StackResource) -> None:
    """Reset the failed status of the stacks and resources that contain a resource.

    That is done only if everything within is healthy and matches the templates: a person's mark stays. If several such
    actions end at once, the last one sees the results of the others.
    """
    Stack.objects.select_for_update(no_key=True).get(pk=replaced.stack.root_key)
    resource: StackResource | None = StackResource.objects.select_related("stack").get(pk=replaced.pk)
    while resource is not None:
        stack = resource.stack
        if not is_whole(stack):
            return
        recover(stack)
        resource = stack.parent_resource
        if resource is not None and resource.status in FAILED and not resource.is_marked:
            # What is within is as that says, which is written of it when it is done.
            resource.properties = resource.stack.template["resources"][resource.name]["properties"]
            recover(resource)


def recover(part: Stack | StackResource) -> None:
    if part.status in FAILED and not part.is_marked:
        begin(part, Verb.UPDATE)
        end_well(part)


def is_whole(stack: Stack) -> bool:
    """Return whether a stack has exactly the resources of its template, and all of them are healthy."""
    parts = list(stack.resources.present())
    wanted = stack.template["resources"]
    return {part.name for part in parts} == set(wanted) and all(
        part.status.endswith("_COMPLETE")
        and part.status != StackStatus.INIT_COMPLETE
        and part.properties == wanted[part.name]["properties"]
        for part in parts
    )
