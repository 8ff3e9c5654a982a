"""Beginning and ending operations on stacks and resources, and on the stacks within resources.

A result that was stored before a crash is kept.
"""

from collections.abc import Sequence

from django.db.models import Model

from actions.types import messages
from actions.types.base import ActionFailed
from cluster.models import Stack, StackResource
from cluster.models.stacks import IN_PROGRESS, Verb
from cluster.simulated import simulated_cloud
from watcher_site.messages import cut
from watcher_site.state_machine import ConcurrentTransition, TransitionNotAllowed


def begin_operation(part: Stack | StackResource, verb: Verb, records: Sequence[Model] = ()) -> None:
    """Begin an operation on a stack or a resource, and write related rows in the same commit.

    Raises:
        ActionFailed: another operation on it is in progress.
    """
    try:
        part.begin(verb)
        write_part(part, records)
    except ConcurrentTransition as problem:
        raise ActionFailed(messages.PART_BUSY.fill(part=part._meta.verbose_name, uuid=part.uuid)) from problem


def end_with_success(part: Stack | StackResource, skipped: Sequence[str] = (), records: Sequence[Model] = ()) -> None:
    """End an operation on a stack or a resource with success, and name the skipped resources in the reason."""
    if part.status not in IN_PROGRESS:
        return
    part.finish()
    if skipped:
        part.status_reason = cut(messages.fill_list(messages.COMPLETED_WITHOUT, skipped, result=part.status_reason))
    save_part(part, records)


def fail_in_progress(part: Stack | StackResource, reason: str) -> None:
    """Set a stack or a resource to failed if an operation on it is in progress."""
    if part.status in IN_PROGRESS:
        part.fail(reason)
        save_part(part)


def save_part(part: Stack | StackResource, records: Sequence[Model] = ()) -> None:
    """Save a change of a stack or resource. Raises: `ActionFailed` if another operation has changed it."""
    try:
        write_part(part, records)
    except (ConcurrentTransition, TransitionNotAllowed) as problem:
        raise ActionFailed(messages.PART_CHANGED.fill(part=part._meta.verbose_name, uuid=part.uuid)) from problem


def write_part(part: Stack | StackResource, records: Sequence[Model] = ()) -> None:
    """Write a change of a stack or resource, except in a preflight."""
    if simulated_cloud() is None:
        part.save_state(*records)


def begin_stack(uuid: str, verb: Verb) -> None:
    """Begin an operation on the stack within a resource. Raises: `ActionFailed` if another one is in progress."""
    if stack := find_stack(uuid):
        begin_operation(stack, verb)


def end_stack(uuid: str, skipped: Sequence[str]) -> None:
    """End an operation on the stack within a resource with success."""
    if stack := find_stack(uuid):
        end_with_success(stack, skipped)


def find_stack(uuid: str) -> Stack | None:
    if model := simulated_cloud():
        return model.stacks.find_stack(uuid)
    stack: Stack | None = Stack.objects.present().filter(uuid=uuid).first()
    return stack


def stacks_within(resource: StackResource) -> list[Stack]:
    """Return all stacks within a resource: the current one, former ones, and a future one."""
    if model := simulated_cloud():
        return list(model.stacks.within[resource.pk])
    return list(resource.nested_stacks.present().order_by("pk"))


def former_stacks(resource: StackResource) -> list[Stack]:
    """Return the stacks within a resource except the current one."""
    return [stack for stack in stacks_within(resource) if str(stack.uuid) != resource.physical_id]


def remove_empty(stacks: Sequence[Stack], skipped: Sequence[str] = ()) -> str | None:
    """Delete the rows of stacks without resources; return a sentence about remaining resources, or None.

    Args:
        skipped: the names of resources whose deletion was skipped.
    """
    for stack in stacks:
        if names := names_in(stack):
            left = messages.SKIPPED_RESOURCES_LEFT if set(names) <= set(skipped) else messages.RESOURCES_LEFT
            return messages.fill_list(left, names, name=stack.name)
        remove_stack(stack)
    return None


def names_in(stack: Stack) -> list[str]:
    """Return the sorted names of the resources of a stack."""
    if model := simulated_cloud():
        return sorted(resource.name for resource in model.stacks.parts[stack.pk])
    return list(stack.resources.present().order_by("name").values_list("name", flat=True))


def remove_stack(stack: Stack) -> None:
    """Delete the row of a stack with any status."""
    if stack.verb != Verb.DELETE or stack.is_failed:
        begin_operation(stack, Verb.DELETE)
    if model := simulated_cloud():
        model.stacks.remove_stack(stack)
    else:
        stack.remove()
