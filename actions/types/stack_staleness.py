"""Staleness of plans for a stack: a plan that was made before another one changed the stack would only fail."""

from actions.models import Action
from actions.models.plan_states import RUNNING_PLAN, PlanState
from cluster.models import Stack, StackResource
from watcher_site.refusals import Conflict


def require_current(stack: Stack, action: str, revision: int) -> None:
    """Look whether anything was done to a stack, or is about to be, since a plan for it was made.

    Args:
        stack: its row is locked: of two that start at once the second finds the first.
        action: the UUID of the action that was planned.
        revision: that of the stack then.

    Raises:
        Conflict: it names the operation that came first.
    """
    others = Action.objects.present().filter(target=str(stack.uuid), derived_from=None).exclude(uuid=action)
    others = others.select_related("action_plan").order_by("pk")
    started = [PlanState.PENDING, *RUNNING_PLAN]
    if first := others.unfinished().filter(action_plan__state__in=started).first():
        raise Conflict(f"Stack {stack.name}: {told(first)} was started before, and has not ended.")
    if stack.revision == revision:
        return
    done = others.filter(data__begun=True, data__revision__gt=revision).order_by("data__revision", "pk").first()
    first = done or last_replacement(stack)
    what = told(first) if first else "another operation"
    raise Conflict(f"Stack {stack.name}: {what} came first, and has changed it since this plan was made. Plan anew.")


def last_replacement(stack: Stack) -> Action | None:
    """Return the action that replaced one of its resources alone, if there is one: the last."""
    parts = StackResource.objects.tree(stack).values_list("uuid", flat=True)
    alone = Action.objects.present().filter(action_type="replace_resource", derived_from=None)
    ended = alone.filter(target__in=[str(uuid) for uuid in parts], end_time__isnull=False)
    found: Action | None = ended.select_related("action_plan").order_by("end_time").last()
    return found


def told(action: Action) -> str:
    return f"action {action.uuid} ({action.action_type}) of action plan {action.action_plan.uuid}"
