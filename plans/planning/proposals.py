"""The creation of RECOMMENDED plans, with the skips that people made in the previous plan of an audit."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import orjson
from django.db import transaction

from actions.exclusions.matching import excluded_permanently
from actions.graph.propagation import skip_planned
from actions.graph.proposals import BATCH, ProposedAction, check_graph, write_actions
from actions.models import Action
from plans.models import ActionPlan, EfficacyIndicator
from watcher_site.outbox.kinds import CREATE
from watcher_site.outbox.writing import announce, announce_changes

COLUMNS = ("state", "skipped_by", "reason", "status_message")


@transaction.atomic
def propose(
    actions: Sequence[ProposedAction],
    *,
    audit_id: int | None = None,
    strategy_id: int | None = None,
    continues: ActionPlan | None = None,
    on_failure: str = ActionPlan.OnFailure.CONTINUE,
    schedule: Mapping[str, Any] = MappingProxyType({}),
    indicators: Sequence[EfficacyIndicator] = (),
    global_efficacy: Sequence[Mapping[str, Any]] = (),
) -> ActionPlan:
    """Write a RECOMMENDED plan with its actions, their parents and its efficacy indicators.

    A plan without actions has nothing to recommend and SUCCEEDED at once. What a rule excludes at every hour is
    SKIPPED from the beginning. ``schedule`` has the columns that say when the plan may begin. ``indicators`` are not
    yet saved, and belong to no plan. The number of statements does not grow with the plan, but for one more each
    `BATCH` rows.

    Raises:
        Invalid: a parent is no action of the plan, or the parents form a cycle.
    """
    check_graph(actions)
    excluded = excluded_permanently(actions)
    plan = ActionPlan(
        audit_id=audit_id,
        strategy_id=strategy_id,
        continues=continues,
        on_failure=on_failure,
        **schedule,
        global_efficacy=list(global_efficacy),
    )
    if not actions:
        plan.succeed("There was nothing to do.")
    plan.save()
    announce(ActionPlan.notified_as, [CREATE], [plan.pk])
    write_actions(plan.pk, actions, excluded=excluded)
    for indicator in indicators:
        indicator.action_plan = plan
    EfficacyIndicator.objects.bulk_create(indicators, batch_size=BATCH)
    return plan


def carry_skips(plan: ActionPlan, earlier: Collection[int]) -> int:
    """Skip the actions that a person skipped in the previous plan of the audit, and return their number.

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
