"""Skips by people that carry over from the plan of a continuous audit's earlier run to that of the next."""

from collections.abc import Collection
from typing import Any

import orjson

from actions.models import Action
from actions.planned import skip_planned
from actions.proposals import BATCH
from plans.models import ActionPlan
from watcher_site.notifications.outbox import announce_changes

COLUMNS = ("state", "skipped_by", "reason", "status_message")


def carry_skips(plan: ActionPlan, earlier: Collection[int]) -> int:
    """Skip in a new plan what a person skipped in the newest of its audit's earlier plans, and return how many.

    An action is the same where its type and its parameters are, the resource among them. What a person restored in
    that plan is not skipped. Three statements at most, however many actions there are.

    Args:
        plan: RECOMMENDED, and new: nobody else can have changed it.
        earlier: the primary keys of the audit's plans that the new one replaces, which are locked.
    """
    skips = read_skips(max(earlier)) if earlier else {}
    if not skips:
        return 0
    types = {action_type for action_type, _ in skips}
    same = [one for one in plan.actions.pending().filter(action_type__in=types).order_by("pk") if key(one) in skips]
    for action in same:
        action.skip_as_earlier(*skips[key(action)])
    Action.objects.bulk_update(same, COLUMNS, batch_size=BATCH)
    changes = [(action.pk, Action.State.PENDING) for action in same]
    announce_changes(Action.notified_as, changes, Action.State.SKIPPED)
    return len(same) + skip_planned(same)


def read_skips(plan: int) -> dict[tuple[str, bytes], tuple[str, str]]:
    """Return by what identifies an action who skipped it in a plan, and the reason."""
    skipped = Action.objects.present().filter(action_plan=plan, state=Action.State.SKIPPED, skipped_by__isnull=False)
    return {key(action): (str(action.skipped_by), action.reason) for action in skipped}


def key(action: Any) -> tuple[str, bytes]:
    return action.action_type, orjson.dumps(action.input_parameters, option=orjson.OPT_SORT_KEYS)
