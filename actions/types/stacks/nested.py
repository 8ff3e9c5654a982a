"""The stacks within resources: how they begin, and how they end."""

from collections.abc import Sequence

from actions.types.stacks.status import begin, end_well, listed
from cluster.models import Stack, StackResource
from cluster.models.stacks import Verb
from cluster.simulated import foreseen_cloud


def begin_stack(uuid: str, verb: Verb) -> None:
    """Begin an operation on the stack within a resource. Raises: `ActionFailed`, if another one is in progress."""
    if stack := find_stack(uuid):
        begin(stack, verb)


def end_stack(uuid: str, left_out: Sequence[str]) -> None:
    """End an operation on the stack within a resource with success."""
    if stack := find_stack(uuid):
        end_well(stack, left_out)


def find_stack(uuid: str) -> Stack | None:
    if model := foreseen_cloud():
        return model.stacks.find_stack(uuid)
    found: Stack | None = Stack.objects.present().filter(uuid=uuid).first()
    return found


def stacks_within(resource: StackResource) -> list[Stack]:
    """Return all stacks that are within a resource: its own, and such as were, or are to be, in the place of it."""
    if model := foreseen_cloud():
        return list(model.stacks.within[resource.pk])
    return list(resource.nested_stacks.present().order_by("pk"))


def former_stacks(resource: StackResource) -> list[Stack]:
    """Return those stacks within a resource that another one has taken the place of, or that never took it."""
    return [stack for stack in stacks_within(resource) if str(stack.uuid) != resource.physical_id]


def remove_empty(stacks: Sequence[Stack], skipped: Sequence[str] = ()) -> str | None:
    """Delete the rows of stacks that nothing is in any more, and return what is in the way of that, if anything is.

    Args:
        skipped: the names of resources whose deletion was skipped.
    """
    for stack in stacks:
        if left := names_in(stack):
            called = "resources whose deletion was skipped" if set(left) <= set(skipped) else "resources"
            return f"Stack {stack.name} still has {called}: {listed(left)}"
        remove(stack)
    return None


def names_in(stack: Stack) -> list[str]:
    """Return the names of the resources that are in a stack, in order."""
    if model := foreseen_cloud():
        return sorted(resource.name for resource in model.stacks.parts[stack.pk])
    return list(stack.resources.present().order_by("name").values_list("name", flat=True))


def remove(stack: Stack) -> None:
    """Delete the row of a stack, whatever its status came to say."""
    if stack.verb != Verb.DELETE or stack.is_failed:
        begin(stack, Verb.DELETE)
    if model := foreseen_cloud():
        model.stacks.remove_stack(stack)
    else:
        stack.remove()
