"""The rows of goals, strategies and scoring engines follow the plug-ins that are installed.

A removed one ends its unfinished audits and plans. A changed one does not: an upgrade may change it while they run.
"""

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import models, transaction
from django.db.models import Case, Value, When

from audits.goals import GOALS
from audits.models import Audit, AuditTemplate, Goal, ScoringEngine, Strategy
from plans.models import ActionPlan
from watcher_site.database.locks import lock_table
from watcher_site.plugins import load

Columns = Mapping[str, Any]

# The tables that `synchronize` reads and writes.
SYNCHRONIZED = (Goal, Strategy, ScoringEngine, AuditTemplate, Audit, ActionPlan)

GOAL_GONE = "Its goal was removed."
STRATEGY_GONE = "Its strategy was removed."


@transaction.atomic
def synchronize() -> None:
    """Bring the rows in line with the plug-ins. Doing it again, or twice at once, changes nothing.

    A plug-in that changed gets a new row with a new UUID, and what pointed at the old one points at the new one.
    """
    lock_table(Goal)
    synchronize_goals()
    synchronize_strategies()
    synchronize_scoring_engines()


def synchronize_goals() -> None:
    wanted = {
        goal.name: {
            "name": goal.name,
            "display_name": goal.display_name,
            "efficacy_specification": goal.efficacy_specification(),
        }
        for goal in GOALS.values()
    }
    replaced, removed = replace_rows(Goal, wanted)
    cancel_unfinished(Audit.objects.filter(goal__in=removed), GOAL_GONE)
    for rows in (Strategy.objects.present(), AuditTemplate.objects.all(), Audit.objects.all()):
        update_references(rows, "goal", replaced)


def synchronize_strategies() -> None:
    goals = dict(Goal.objects.present().values_list("name", "pk"))
    wanted = {
        strategy.name: {
            "name": strategy.name,
            "display_name": strategy.display_name,
            "goal_id": goal_of(strategy, goals),
            "parameters_spec": dict(strategy.schema),
        }
        for strategy in load("STRATEGIES").values()
    }
    replaced, removed = replace_rows(Strategy, wanted)
    cancel_unfinished(Audit.objects.filter(strategy__in=removed), STRATEGY_GONE)
    ActionPlan.objects.filter(strategy__in=removed).cancel_unfinished(STRATEGY_GONE)
    for rows in (AuditTemplate.objects.all(), Audit.objects.all(), ActionPlan.objects.all()):
        update_references(rows, "strategy", replaced)
    if removed:
        AuditTemplate.objects.filter(strategy__in=removed).update(strategy=None)


def synchronize_scoring_engines() -> None:
    wanted = {
        engine.name: {"name": engine.name, "description": engine.description, "metainfo": engine.metainfo}
        for engine in load("SCORING_ENGINES").values()
    }
    replace_rows(ScoringEngine, wanted)


def goal_of(strategy: Any, goals: Mapping[str, int]) -> int:
    try:
        return goals[strategy.goal]
    except KeyError:
        raise ImproperlyConfigured(f"Strategy {strategy.name}: there is no goal {strategy.goal}.") from None


def replace_rows(model: Any, wanted: Mapping[str, Columns]) -> tuple[dict[int, int], list[int]]:
    """Make the present rows of a model those that are wanted, by name.

    Returns:
        The primary keys of the rows that changed, each with that of its new row; and those that have no new row.
    """
    existing = {row.name: row for row in model.objects.present()}
    stale = {name: row.pk for name, row in existing.items() if name not in wanted or differs(row, wanted[name])}
    if stale:
        model.objects.filter(pk__in=stale.values()).soft_delete()
    fresh = [model(**columns) for name, columns in wanted.items() if name not in existing or name in stale]
    created = {row.name: row.pk for row in model.objects.bulk_create(fresh)}
    replaced = {old: created[name] for name, old in stale.items() if name in created}
    return replaced, [old for name, old in stale.items() if name not in created]


def differs(row: Any, columns: Columns) -> bool:
    return any(getattr(row, column) != value for column, value in columns.items())


def cancel_unfinished(audits: Any, message: str) -> None:
    """Cancel audits and their plans. The plans are selected without a join, because their rows are locked."""
    audits.cancel_unfinished(message)
    ActionPlan.objects.filter(audit__in=audits).cancel_unfinished(message)


def update_references(rows: models.QuerySet[Any], column: str, replaced: Mapping[int, int]) -> None:
    if replaced:
        new = Case(*(When(**{column: old}, then=Value(new)) for old, new in replaced.items()))
        rows.filter(**{f"{column}__in": replaced}).update(**{column: new})
