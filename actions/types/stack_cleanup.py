"""Clean up resources whose actions were failed by the engine, and could not write their result.

Such an action hung, or was recovered too often. The status of its resource is still in progress, and has replaced a
person's mark.
"""

from actions.models import Action
from actions.types.base import ActionContext, make
from actions.types.stacks.resources import BEGUN
from cluster.models import Stack, StackResource
from cluster.models.stacks import IN_PROGRESS


def settle_abandoned(root: Stack) -> None:
    """Write the result to each resource of a tree that is still in progress: one query if there is none.

    The caller has made sure that no action works on the stack, and that none begins meanwhile.
    """
    rows = StackResource.objects.present().tree(root).filter(status__in=IN_PROGRESS)
    targets = [str(uuid) for uuid in rows.values_list("uuid", flat=True)]
    ended = Action.objects.filter(target__in=targets, state__in=Action.FINAL) if targets else Action.objects.none()
    last = {action.target: action for action in ended.order_by("pk") if BEGUN in (action.data or {})}
    for action in last.values():
        context = ActionContext(str(action.uuid), data=action.data, is_derived=True)
        make(action.action_type, action.input_parameters, context).post_condition()
