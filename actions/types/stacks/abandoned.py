"""What becomes of resources whose actions the engine gave up, where nobody was left to say what came of them.

Such an action hung, or was recovered too often. Its resource still reads as at work, and no longer tells that a person
had marked it.
"""

from actions.models import Action
from actions.types.base import ActionContext, make
from actions.types.stacks.resources import BEGUN
from cluster.models import Stack, StackResource
from cluster.models.stacks import IN_PROGRESS


def settle_abandoned(root: Stack) -> None:
    """Have each resource of a tree that reads as at work say what came of that: one query where there is none.

    The caller has seen that nobody is at work on the stack, and that nobody begins meanwhile.
    """
    rows = StackResource.objects.present().tree(root).filter(status__in=IN_PROGRESS)
    targets = [str(uuid) for uuid in rows.values_list("uuid", flat=True)]
    ended = Action.objects.filter(target__in=targets, state__in=Action.FINAL) if targets else Action.objects.none()
    last = {action.target: action for action in ended.order_by("pk") if BEGUN in (action.data or {})}
    for action in last.values():
        context = ActionContext(str(action.uuid), data=action.data, is_derived=True)
        make(action.action_type, action.input_parameters, context).post_condition()
