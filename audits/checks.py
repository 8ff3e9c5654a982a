"""System checks: the goal and the planner of every strategy exist."""

from typing import Any

from django.core.checks import CheckMessage, Error, register

from audits.goals import GOALS
from audits.planner import PLANNERS
from watcher_site.plugins import load


@register()
def check_strategies(**_: Any) -> list[CheckMessage]:
    try:
        strategies = load("STRATEGIES").values()
    except Exception:  # The check of all plug-ins reports plug-ins that cannot be loaded.
        return []
    problems: list[CheckMessage] = []
    for strategy in strategies:
        for attribute, names in (("goal", GOALS), ("planner", PLANNERS)):
            value = getattr(strategy, attribute, None)
            if value not in names:
                text = f"WATCHER_STRATEGIES: {strategy.name} names the {attribute} {value}, which is not there."
                problems.append(Error(text, id=f"audits.E00{1 if attribute == 'goal' else 2}"))
    return problems
