"""Skips by people that carry over from the plan of a continuous audit's earlier run to the plan of the next run."""

from collections.abc import Collection
from typing import Any

import orjson

from actions.graph.propagation import skip_planned
from actions.graph.proposals import BATCH
from actions.models import Action
from plans.models import ActionPlan
from watcher_site.outbox.writing import announce_changes

COLUMNS = ("state", "skipped_by", "reason", "status_message")


def carry_skips(plan: ActionPlan, earlier: Collection[int]) -> int:
    """Skip in a new plan the actions that a person skipped in its audit's newest earlier plan; return their number.

    Two actions are the same if their types and their parameters are, including the resource. An action that a person
    restored in that plan is not skipped. At most three statements, whatever the number of actions.

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
    """Return, by the key of each action that a person skipped in a plan, the person and the reason."""
    skipped = Action.objects.present().filter(action_plan=plan, state=Action.State.SKIPPED, skipped_by__isnull=False)
    return {key(action): (str(action.skipped_by), action.reason) for action in skipped}


def key(action: Any) -> tuple[str, bytes]:
    return action.action_type, orjson.dumps(action.input_parameters, option=orjson.OPT_SORT_KEYS)
