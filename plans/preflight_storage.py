"""The storage of results of preflights, with the version of the plan and the cloud from which each was computed.

A result is computed again if its version is out of date or if it is older than `MAX_AGE`, because a few columns and
conditions that depend on the time change without `updated_at`.
"""

from collections.abc import Sequence
from datetime import timedelta
from hashlib import blake2s
from typing import Any, overload

from django.db.models import Count, Max, Subquery, Value
from django.utils import timezone

from actions.engine.dry_run import Foresight
from actions.exclusions.rules import current_rules
from actions.models import Action
from cluster.models import (
    Cluster,
    ComputeNode,
    Flavor,
    HostAggregate,
    Node,
    Policy,
    PolicyBinding,
    Pool,
    Profile,
    Server,
    Stack,
    StackResource,
    StorageNode,
    Volume,
    VolumeAttachment,
    VolumeType,
)
from plans.models import ActionPlan
from plans.models.preflight_results import UNKNOWN, PreflightResult
from plans.models.refusals import PlanOperation, require_plan_allowing
from plans.preflight import Prospect, freshness, preflight

MAX_AGE = timedelta(minutes=5)
# The tables that a preflight reads and whose rows have `updated_at`.
TABLES: Sequence[Any] = (
    *(ComputeNode, HostAggregate, Server, Flavor, Volume, VolumeAttachment, VolumeType, Pool, StorageNode),
    *(Cluster, Node, Profile, Policy, PolicyBinding, Stack, StackResource),
)


def find_result(plan: ActionPlan, *, details: bool) -> PreflightResult:
    """Return the stored result of a plan's preflight if it is current, otherwise a new unsaved one.

    The caller passes a new one to `store_result`, outside of `consistent_reads`.

    Args:
        details: whether messages may contain the errors of derived actions.

    Raises:
        Conflict: no action of the plan begins any more.
    """
    require_plan_allowing(PlanOperation.PREFLIGHT, plan)
    version, now = find_version(plan), timezone.now()
    current = PreflightResult.objects.filter(
        action_plan=plan, shows_details=details, version=version, computed_at__gt=now - MAX_AGE
    ).first()
    if current is not None:
        return current
    found = preflight(plan, details=details)
    return PreflightResult(
        action_plan=plan,
        shows_details=details,
        version=version,
        computed_at=now,
        prospects=[[one.action.pk, one.outcome, one.foresight.message] for one in found.prospects],
        ended=dict(found.ended),
        is_mirrored=found.is_mirrored,
        read_at=found.read_at,
    )


def store_result(result: PreflightResult) -> None:
    """Replace the stored result by a new one, and remove the oldest result of all plans if it has expired.

    Has no effect on a stored result. One row is removed at a time, so that two processes never deadlock.
    """
    if result.pk is not None:
        return
    PreflightResult.objects.bulk_create(
        [result],
        update_conflicts=True,
        unique_fields=["action_plan", "shows_details"],
        update_fields=["version", "computed_at", "prospects", "ended", "is_mirrored", "read_at"],
    )
    old = PreflightResult.objects.filter(computed_at__lte=result.computed_at - MAX_AGE).order_by("computed_at")
    PreflightResult.objects.filter(pk=Subquery(old.values("pk")[:1])).delete()


def find_version(plan: ActionPlan) -> str:
    """Return a version that changes with the plan, its actions, the rules in force and the cloud, in four queries."""
    now = timezone.now()
    rules = current_rules()
    parts = (
        (str(plan.state), str(plan.on_failure), plan.updated_at, plan.signals),
        sorted(plan.actions.all().latest_changes().items()),
        (rules.mark, [rule.key for rule in rules.rules if rule.is_in_force(now)]),
        freshness(),
        sorted(latest_changes_of_cloud()),
    )
    return blake2s(repr(parts).encode()).hexdigest()


def latest_changes_of_cloud() -> list[tuple[Any, ...]]:
    """Return the number of rows of each of the `TABLES`, their latest key and the time of their latest change."""
    first, *others = (
        model.objects.order_by()
        .annotate(table=Value(model._meta.db_table))
        .values_list("table")
        .annotate(Count("pk"), Max("pk"), Max("updated_at"), Max("deleted_at"))
        for model in TABLES
    )
    return list(first.union(*others, all=True))


class Prospects(Sequence[Prospect]):
    """The prospects of a stored result. Only the actions of requested slices are read from the database."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Prospect: ...

    @overload
    def __getitem__(self, index: slice) -> list[Prospect]: ...

    def __getitem__(self, index: int | slice) -> Prospect | list[Prospect]:
        if isinstance(index, int):
            return read_prospects([self.rows[index]])[0]
        return read_prospects(self.rows[index])


def read_prospects(rows: Sequence[Any]) -> list[Prospect]:
    """Return the prospects of these rows with their actions, in one query."""
    actions = Action.objects.in_bulk([key for key, _outcome, _message in rows])
    return [
        Prospect(actions[key], Foresight(None if outcome == UNKNOWN else outcome, message))
        for key, outcome, message in rows
        if key in actions
    ]
