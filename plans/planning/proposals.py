"""The creation of RECOMMENDED plans, with the skips of users in the previous plan of the audit."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import orjson
from django.db import transaction

from actions.exclusions.matching import excluded_permanently
from actions.graph.propagation import skip_planned
from actions.graph.proposals import BATCH, ProposedAction, check_graph, write_actions
from actions.models import Action
from plans.messages import NOTHING_TO_DO
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

    A plan without actions is SUCCEEDED immediately. Actions that an exclusion without a window matches are SKIPPED
    immediately. ``schedule`` has the values of the columns of the schedule. ``indicators`` are not yet saved. The
    number of statements is constant, except for one more for every `BATCH` rows.

    Raises:
        Invalid: a parent is not an action of the plan, or the parents form a cycle.
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
        plan.succeed(NOTHING_TO_DO.text)
    plan.save()
    announce(ActionPlan.notified_as, [CREATE], [plan.pk])
    write_actions(plan.pk, actions, excluded=excluded)
    for indicator in indicators:
        indicator.action_plan = plan
    EfficacyIndicator.objects.bulk_create(indicators, batch_size=BATCH)
    return plan


def carry_skips(plan: ActionPlan, earlier: Collection[int]) -> int:
    """Skip the actions that a user skipped in the previous plan of the audit, and return their number.

    Actions are compared by type and parameters. An action that a user restored in that plan is not skipped. Takes at
    most three statements, independent of the number of actions.

    Args:
        plan: a new plan that is not yet visible to other transactions.
        earlier: the primary keys of the plans of the audit that the new one replaces. Their rows are locked.
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
    """Return the user and the reason of each skip by a user in a plan, by the key of the action."""
    skipped = Action.objects.present().filter(action_plan=plan, state=Action.State.SKIPPED, skipped_by__isnull=False)
    return {key(action): (str(action.skipped_by), action.reason) for action in skipped}


def key(action: Any) -> tuple[str, bytes]:
    return action.action_type, orjson.dumps(action.input_parameters, option=orjson.OPT_SORT_KEYS)
