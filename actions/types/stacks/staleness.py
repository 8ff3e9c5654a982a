"""Staleness of decisions about a stack: other operations on it, and marks that were made or withdrawn since."""

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

from actions.models import Action
from actions.models.plan_states import RUNNING_PLAN, PlanState
from cluster.models import Stack, StackResource, StackStatus
from cluster.simulated import foreseen_cloud
from cluster.stacks.decisions import Change, Kind
from watcher_site.refusals import Conflict

MARKED, WITHDRAWN = StackStatus.CHECK_FAILED, StackStatus.CHECK_COMPLETE


def require_current_stack(stack: Stack, action: str, revision: int) -> None:
    """Check that no operation on a stack has changed it, or was started, since a plan for it was made.

    Args:
        stack: its row is locked: of two plans that start at once, the second finds the first.
        action: the UUID of the planned action.
        revision: the revision of the stack when the plan was made.

    Raises:
        Conflict: the message names the operation that came first.
    """
    others = Action.objects.present().filter(target=str(stack.uuid), derived_from=None).exclude(uuid=action)
    others = others.select_related("action_plan").order_by("pk")
    started = [PlanState.PENDING, *RUNNING_PLAN]
    if first := others.unfinished().filter(action_plan__state__in=started).first():
        raise Conflict(f"Stack {stack.name}: {describe_operation(first)} was started before, and has not ended.")
    if stack.revision == revision:
        return
    done = others.filter(data__begun=True, data__revision__gt=revision).order_by("data__revision", "pk").first()
    first = done or last_replacement(stack)
    operation = describe_operation(first) if first else "another operation"
    raise Conflict(
        f"Stack {stack.name}: {operation} came first, and has changed it since this plan was made. Plan anew."
    )


def last_replacement(stack: Stack) -> Action | None:
    """Return the last action that replaced one of its resources without an action on the stack, if there is one."""
    parts = StackResource.objects.tree(stack).values_list("uuid", flat=True)
    alone = Action.objects.present().filter(action_type="replace_resource", derived_from=None)
    ended = alone.filter(target__in=[str(uuid) for uuid in parts], end_time__isnull=False)
    found: Action | None = ended.select_related("action_plan").order_by("end_time").last()
    return found


def describe_operation(action: Action) -> str:
    return f"action {action.uuid} ({action.action_type}) of action plan {action.action_plan.uuid}"


def find_mark_change(root: Stack, changes: Iterable[Change], known: Iterable[str]) -> str | None:
    """Return a sentence about a mark that was made or withdrawn after a decision, or None: two queries.

    A mark of a resource of which a later generation exists is a new one: the decision replaced, or would have
    replaced, an earlier generation.

    Args:
        root: its row is locked, as it is while a part of the tree is marked.
        changes: the decision.
        known: the UUIDs of the stacks and resources that were marked when it was made.
    """
    known, ends = set(known), ending_generations(changes)
    for part in find_marked(root):
        uuid = str(part.uuid)
        was_known = uuid in known and getattr(part, "generation", 0) < ends.get(uuid, inf)
        if part.status == MARKED and not was_known:
            return f"{part.name} was marked unhealthy since this plan was made."
        if part.status == WITHDRAWN and was_known:
            return f"The mark of {part.name} was withdrawn since this plan was made."
    return None


def find_marked(root: Stack) -> Iterable[Stack | StackResource]:
    """Return the stacks, and then the resources, of a tree that are marked or whose mark was withdrawn."""
    if model := foreseen_cloud():
        found = [part for part in model.stacks.tree(root) if part.status in {MARKED, WITHDRAWN}]
        return sorted(found, key=lambda part: (isinstance(part, StackResource), part.pk))
    return [
        *order_marked(Stack.objects.present().tree(root)),
        *order_marked(StackResource.objects.present().tree(root)),
    ]


def order_marked(parts: Any) -> Iterable[Stack | StackResource]:
    found: Iterable[Stack | StackResource] = parts.filter(status__in=[MARKED, WITHDRAWN]).order_by("pk")
    return found


def ending_generations(changes: Iterable[Change]) -> Mapping[str, float]:
    """Return, by UUID, the generation that a change creates, which ends all earlier ones; infinity for a deletion."""
    found: dict[str, float] = {}
    for change in changes:
        if change.kind is Kind.REPLACE:
            found[change.uuid] = change.generation
        elif change.kind is Kind.DELETE:
            found[change.uuid] = inf
        for step in [*change.steps, change.clearing]:
            found.update(ending_generations(step))
    return found
