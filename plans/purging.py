"""Permanent removal of action plans with their actions and events, in transactions of a limited number of rows."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from actions.models import Action, ActionEvent, ActionParent
from actions.models.instance_actions import InstanceAction
from actions.server_history import keep_operations
from plans.models import ActionPlan, EfficacyIndicator

# The plans, actions, events and dependencies of one transaction.
#
# Measured on PostgreSQL with 200,000 actions and 500,000 events, on two processors with a load of 8: the 12,054
# transactions took 23 ms in the median, the longest 826 ms. Without the time for which the processes waited for a
# processor, measured for the first 3,640 transactions: 3 ms in the median, the longest 80 ms.
ROWS = 100
# The actions of a larger plan that are removed together.
ACTIONS = 50


def remove_plans(plans: QuerySet[ActionPlan], keys: Sequence[int]) -> Iterator[int]:
    """Remove plans with all their rows, and yield after each batch the number of plans and actions that it removed.

    Small plans are removed together, a larger one in several transactions. Before the first of these, the plan is
    marked as deleted: no plan that is shown lacks actions, and an interrupted purge can be repeated. Each transaction
    locks the plans first, in the order of their keys (docs/architecture.md, "Lock order").

    Args:
        plans: the plans that may be removed; the condition is checked again when a plan is locked.
    """
    for group, weight in make_groups(keys):
        if weight > ROWS:
            yield from remove_actions_of(plans, group[0])
        yield remove_together(plans, group)


def make_groups(keys: Sequence[int]) -> Iterator[tuple[list[int], int]]:
    """Group plans so that each group has at most `ROWS` rows, or is one larger plan. Return also their number."""
    group: list[int] = []
    total = 0
    for key, weight in sorted(count_rows(keys).items()):
        if group and total + weight > ROWS:
            yield group, total
            group, total = [], 0
        group.append(key)
        total += weight
    if group:
        yield group, total


def count_rows(keys: Sequence[int]) -> Counter[int]:
    """Return the number of rows of each plan, in a fixed number of queries."""
    numbers: Counter[int] = Counter(dict.fromkeys(keys, 1))
    tables: list[tuple[Any, str]] = [
        (Action, "action_plan"),
        (ActionEvent, "action__action_plan"),
        (ActionParent, "child__action_plan"),
    ]
    for model, plan in tables:
        rows = model.objects.filter(**{f"{plan}__in": keys}).order_by()
        numbers.update(dict(rows.values_list(plan).annotate(number=Count("pk"))))
    return numbers


def lock_removable(plans: QuerySet[ActionPlan], keys: Sequence[int]) -> list[int]:
    """Lock plans, and return the keys of those that may still be removed.

    Plans that continue them are locked too, since their references are cleared.
    """
    affected = ActionPlan.objects.filter(Q(pk__in=keys) | Q(continues__in=keys)).order_by("pk")
    list(affected.select_for_update().values_list("pk", flat=True))
    return list(plans.filter(pk__in=keys).values_list("pk", flat=True))


@transaction.atomic
def remove_together(plans: QuerySet[ActionPlan], keys: Sequence[int]) -> int:
    """Remove plans in one transaction, except plans that were started meanwhile."""
    locked = lock_removable(plans, keys)
    actions = Action.objects.filter(action_plan__in=locked)
    keep_operations(actions)
    ActionEvent.objects.filter(action__action_plan__in=locked).delete()
    ActionParent.objects.filter(child__action_plan__in=locked).delete()
    number = actions.count()
    actions.delete()
    EfficacyIndicator.objects.filter(action_plan__in=locked).delete()
    ActionPlan.objects.filter(pk__in=locked).delete()
    return number + len(locked)


def remove_actions_of(plans: QuerySet[ActionPlan], plan: int) -> Iterator[int]:
    """Remove the actions of a plan in several transactions, and yield the number of each batch."""
    with transaction.atomic():
        if not lock_removable(plans, [plan]):
            return
        # This sends no notifications, like all other removals.
        QuerySet.update(ActionPlan.objects.filter(pk=plan, deleted_at=None), deleted_at=timezone.now())
    actions = Action.objects.filter(action_plan=plan).order_by("-pk").values_list("pk", flat=True)
    # Derived actions have greater keys than the actions that derived them, and are removed first.
    keys = list(actions[:ACTIONS])
    while keys:
        yield remove_actions(plan, keys)
        keys = list(actions.filter(pk__lt=keys[-1])[:ACTIONS])


def remove_actions(plan: int, keys: list[int]) -> int:
    """Remove some actions of a plan that is marked as deleted, with their rows, and return the number of actions."""
    with transaction.atomic():
        # A repeated purge must not replace the copies of events by those of the events that are left.
        ActionPlan.objects.select_for_update().filter(pk=plan).first()
        keep_operations(Action.objects.filter(pk__in=keys))
        InstanceAction.objects.filter(action__in=keys).update(action=None)
    tables: list[QuerySet[Any]] = [
        ActionEvent.objects.filter(action__in=keys),
        ActionParent.objects.filter(child__in=keys),
        ActionParent.objects.filter(parent__in=keys),
    ]
    for rows in tables:
        while remove_some(plan, rows):
            pass
    return remove_some(plan, Action.objects.filter(pk__in=keys))


@transaction.atomic
def remove_some(plan: int, rows: QuerySet[Any]) -> int:
    """Remove at most `ROWS` of these rows of a plan, and return their number."""
    ActionPlan.objects.select_for_update().filter(pk=plan).first()
    keys = list(rows.order_by().values_list("pk", flat=True)[:ROWS])
    rows.model._default_manager.filter(pk__in=keys).delete()
    return len(keys)
