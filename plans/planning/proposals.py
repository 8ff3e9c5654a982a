"""Write a proposed plan to the tables: completely and checked, or not at all."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from django.db import transaction

from actions.exclusions.matching import excluded_permanently
from actions.graph.proposals import BATCH, ProposedAction, check_graph, write_actions
from plans.models import ActionPlan, EfficacyIndicator
from watcher_site.outbox.kinds import CREATE
from watcher_site.outbox.writing import announce


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
