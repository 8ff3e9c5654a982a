"""How a plan comes into the tables: whole and sound, or not at all."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction

from actions.models import Action, ActionParent
from plans.models import ActionPlan, EfficacyIndicator
from watcher_site.refusals import Invalid

# Rows an INSERT: few statements for a large plan, and none too large for the database.
BATCH = 5000


@dataclass(frozen=True)
class ProposedAction:
    """An action to be: its parents are proposed actions of the same plan, which must finish before it starts."""

    action_type: str
    input_parameters: Mapping[str, Any]
    parents: Sequence[UUID] = ()
    uuid: UUID = field(default_factory=uuid4)
    timeout: int | None = None
    """How many seconds one execution may take; None or 0 for the site's default."""


@transaction.atomic
def propose(
    actions: Sequence[ProposedAction],
    *,
    audit_id: int | None = None,
    strategy_id: int | None = None,
    indicators: Sequence[EfficacyIndicator] = (),
    global_efficacy: Sequence[Mapping[str, Any]] = (),
) -> ActionPlan:
    """Write a RECOMMENDED plan with its actions, their parents and its efficacy indicators.

    A plan without actions has nothing to recommend and SUCCEEDED at once. ``indicators`` are not yet saved, and
    belong to no plan. The number of statements does not grow with the plan, but for one more each `BATCH` rows.

    Raises:
        Invalid: a parent is no action of the plan, or the parents form a cycle.
    """
    check_graph(actions)
    plan = ActionPlan(audit_id=audit_id, strategy_id=strategy_id, global_efficacy=list(global_efficacy))
    if not actions:
        plan.succeed("There was nothing to do.")
    plan.save()
    write_actions(plan, actions)
    for indicator in indicators:
        indicator.action_plan = plan
    EfficacyIndicator.objects.bulk_create(indicators, batch_size=BATCH)
    return plan


def write_actions(plan: ActionPlan, proposed: Sequence[ProposedAction]) -> None:
    rows = {
        action.uuid: Action(
            action_plan=plan,
            uuid=action.uuid,
            action_type=action.action_type,
            input_parameters=dict(action.input_parameters),
            timeout=action.timeout,
        )
        for action in proposed
    }
    Action.objects.bulk_create(rows.values(), batch_size=BATCH)
    edges = [
        ActionParent(child=rows[action.uuid], parent=rows[parent])
        for action in proposed
        for parent in dict.fromkeys(action.parents)
    ]
    ActionParent.objects.bulk_create(edges, batch_size=BATCH)


def check_graph(actions: Sequence[ProposedAction]) -> None:
    """Raise `Invalid` unless every parent is an action of the plan, and none waits for itself."""
    uuid, times = next(iter(Counter(action.uuid for action in actions).most_common(1)), (None, 0))
    if times > 1:
        raise Invalid(f"actions: {uuid} stands there {times} times.")
    known = {action.uuid for action in actions}
    for action in actions:
        if strays := [parent for parent in action.parents if parent not in known]:
            raise Invalid(f"parents: {strays[0]}, parent of action {action.uuid}, is no action of the plan.")
    try:
        TopologicalSorter({action.uuid: action.parents for action in actions}).prepare()
    except CycleError as error:
        cycle = " -> ".join(str(uuid) for uuid in error.args[1])
        raise Invalid(f"parents: these actions wait for each other: {cycle}.") from error
