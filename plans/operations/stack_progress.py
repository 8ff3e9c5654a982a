"""The status of a stack for users while an operation on it is accepted and has not begun.

The row of the stack changes when the action begins, under its lock. Until then the status follows from the tables of
plans and actions, so nothing has to be restored if the plan is cancelled or its action is skipped.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from django.db.models import Case, F, Q, QuerySet, TextField, Value, When

from actions.models import Action
from cluster.models.messages import OPERATION_STARTED
from cluster.models.stacks import IN_PROGRESS, Verb
from plans.models import ActionPlan

VERBS = {"create_stack": Verb.CREATE, "update_stack": Verb.UPDATE, "delete_stack": Verb.DELETE}


def starting_operations(stacks: Iterable[UUID | str] | None = None) -> dict[str, Verb]:
    """Return the operation that is about to begin on each root stack, by the UUID of the stack, in one query.

    Plans that are suspended or wait for their hours are ignored.

    Args:
        stacks: the UUIDs of the stacks; None: all stacks.
    """
    accepted = [ActionPlan.State.PENDING, ActionPlan.State.ONGOING]
    plans = ActionPlan.objects.present().open().filter(state__in=accepted)
    actions = Action.objects.unfinished().filter(action_type__in=VERBS, derived_from=None, action_plan__in=plans)
    if stacks is not None:
        actions = actions.filter(target__in=[str(stack) for stack in stacks])
    unbegun = actions.exclude(data__has_key="begun").order_by("-pk")
    return {target: VERBS[kind] for target, kind in unbegun.values_list("target", "action_type")}


def shown_status(status: str, reason: str, verb: Verb | None) -> tuple[str, str]:
    """Return the status and the reason of a stack for users, given the operation that is about to begin."""
    if verb is None or status in IN_PROGRESS:
        return status, reason
    return f"{verb}_IN_PROGRESS", OPERATION_STARTED.fill(operation=verb)


def with_progress(stacks: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate stacks with ``shown_status`` and ``shown_reason``. Takes one query before the stacks are read."""
    starting = statuses_by_operation()
    statuses = cases(starting, lambda verb: f"{verb}_IN_PROGRESS")
    reasons = cases(starting, lambda verb: OPERATION_STARTED.fill(operation=verb))
    return stacks.annotate(
        shown_status=Case(*statuses, default=F("status"), output_field=TextField()),
        shown_reason=Case(*reasons, default=F("status_reason"), output_field=TextField()),
    )


def cases(starting: dict[Verb, list[str]], describe: Callable[[Verb], str]) -> list[When]:
    return [When(starting_condition(stacks), then=Value(describe(verb))) for verb, stacks in starting.items()]


def shown_status_condition(wanted: Iterable[str]) -> Q:
    """Return the condition for stacks whose status for users is one of these. Takes one query."""
    wanted, starting = set(wanted), statuses_by_operation()
    found = Q(status__in=wanted)
    for verb, stacks in starting.items():
        is_wanted = f"{verb}_IN_PROGRESS" in wanted
        found = found | starting_condition(stacks) if is_wanted else found & ~starting_condition(stacks)
    return found


def starting_condition(stacks: list[str]) -> Q:
    return Q(uuid__in=stacks) & ~Q(status__in=IN_PROGRESS)


def statuses_by_operation() -> dict[Verb, list[str]]:
    found: dict[Verb, list[str]] = defaultdict(list)
    for stack, verb in starting_operations().items():
        found[verb].append(stack)
    return found
