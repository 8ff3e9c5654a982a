"""The synchronization of the rows of goals, strategies and scoring engines with the installed plug-ins.

The removal of a plug-in cancels its unfinished audits and plans. A change does not, because an upgrade may change
plug-ins while audits run.
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

# The keywords of JSON Schema that only describe a parameter.
DESCRIPTIVE = frozenset({"title", "description"})

GOAL_GONE = "Its goal was removed."
STRATEGY_GONE = "Its strategy was removed."


@transaction.atomic
def synchronize() -> None:
    """Update the rows to the installed plug-ins. A repeated or concurrent call has no effect.

    A changed plug-in gets a new row with a new UUID, and references are updated to the new row. If only descriptions
    in its schema changed, the row is updated and keeps its UUID.
    """
    lock_table(Goal)
    synchronize_goals()
    synchronize_strategies()
    synchronize_scoring_engines()


def synchronize_goals() -> None:
    columns_by_name = {
        goal.name: {
            "name": goal.name,
            "display_name": goal.display_name,
            "efficacy_specification": goal.efficacy_specification(),
        }
        for goal in GOALS.values()
    }
    replaced, removed = replace_rows(Goal, columns_by_name)
    cancel_unfinished(Audit.objects.filter(goal__in=removed), GOAL_GONE)
    for rows in (Strategy.objects.present(), AuditTemplate.objects.all(), Audit.objects.all()):
        update_references(rows, "goal", replaced)


def synchronize_strategies() -> None:
    goals = dict(Goal.objects.present().values_list("name", "pk"))
    columns_by_name = {
        strategy.name: {
            "name": strategy.name,
            "display_name": strategy.display_name,
            "goal_id": goal_of(strategy, goals),
            "parameters_spec": dict(strategy.schema),
        }
        for strategy in load("STRATEGIES").values()
    }
    replaced, removed = replace_rows(Strategy, columns_by_name)
    cancel_unfinished(Audit.objects.filter(strategy__in=removed), STRATEGY_GONE)
    ActionPlan.objects.filter(strategy__in=removed).cancel_unfinished(STRATEGY_GONE)
    for rows in (AuditTemplate.objects.all(), Audit.objects.all(), ActionPlan.objects.all()):
        update_references(rows, "strategy", replaced)
    if removed:
        AuditTemplate.objects.filter(strategy__in=removed).update(strategy=None)


def synchronize_scoring_engines() -> None:
    columns_by_name = {
        engine.name: {"name": engine.name, "description": engine.description, "metainfo": engine.metainfo}
        for engine in load("SCORING_ENGINES").values()
    }
    replace_rows(ScoringEngine, columns_by_name)


def goal_of(strategy: Any, goals: Mapping[str, int]) -> int:
    try:
        return goals[strategy.goal]
    except KeyError:
        raise ImproperlyConfigured(f"Strategy {strategy.name}: there is no goal {strategy.goal}.") from None


def replace_rows(model: Any, columns_by_name: Mapping[str, Columns]) -> tuple[dict[int, int], list[int]]:
    """Replace the rows of a model that differ from the wanted columns, by name, and return the replacements.

    Returns:
        The keys of the replaced rows with the keys of their new rows; and the keys of the rows that were removed.
    """
    existing = {row.name: row for row in model.objects.present()}
    stale = {
        name: row.pk
        for name, row in existing.items()
        if name not in columns_by_name or differs(row, columns_by_name[name])
    }
    if stale:
        model.objects.filter(pk__in=stale.values()).soft_delete()
    for name in existing.keys() - stale.keys():
        update_descriptions(existing[name], columns_by_name[name])
    fresh = [model(**columns) for name, columns in columns_by_name.items() if name not in existing or name in stale]
    created = {row.name: row.pk for row in model.objects.bulk_create(fresh)}
    replaced = {old: created[name] for name, old in stale.items() if name in created}
    return replaced, [old for name, old in stale.items() if name not in created]


def differs(row: Any, columns: Columns) -> bool:
    """Return whether a row differs from a plug-in in more than descriptions."""
    return any(
        without_descriptions(getattr(row, column)) != without_descriptions(value) for column, value in columns.items()
    )


def without_descriptions(schema: Any) -> Any:
    """Return a JSON Schema without descriptive keywords. A parameter that is called like one is kept."""
    if isinstance(schema, Mapping):
        return {
            name: without_descriptions(value)
            for name, value in schema.items()
            if name not in DESCRIPTIVE or not isinstance(value, str)
        }
    return [without_descriptions(item) for item in schema] if isinstance(schema, list) else schema


def update_descriptions(row: Any, columns: Columns) -> None:
    changed = {column: value for column, value in columns.items() if getattr(row, column) != value}
    for column, value in changed.items():
        setattr(row, column, value)
    if changed:
        row.save_changes(changed)


def cancel_unfinished(audits: Any, message: str) -> None:
    """Cancel audits and their plans. The plans are selected without a join, because their rows are locked."""
    audits.cancel_unfinished(message)
    ActionPlan.objects.filter(audit__in=audits).cancel_unfinished(message)


def update_references(rows: models.QuerySet[Any], column: str, replaced: Mapping[int, int]) -> None:
    if replaced:
        new = Case(*(When(**{column: old}, then=Value(new)) for old, new in replaced.items()))
        rows.filter(**{f"{column}__in": replaced}).update(**{column: new})
