"""Goals and strategies, found by name or UUID for those who make audits and templates."""

from audits.models import Goal, Strategy
from watcher_site.refusals import Invalid, NotFound


def goal_named(identifier: str) -> Goal:
    """Return a goal. Raises `NotFound`."""
    goal = Goal.objects.present().named(str(identifier)).first()
    if goal is None:
        raise NotFound(f"Goal {identifier} could not be found")
    return goal


def strategy_named(identifier: str, goal: Goal) -> Strategy:
    """Return a strategy that pursues this goal.

    Raises:
        NotFound: there is no such strategy.
        Invalid: it serves another goal; the message names those that serve this one.
    """
    strategy = Strategy.objects.present().named(str(identifier)).select_related("goal").first()
    if strategy is None:
        raise NotFound(f"Strategy {identifier} could not be found")
    if strategy.goal_id != goal.pk:
        choices = Strategy.objects.present().filter(goal=goal).order_by("name").values_list("uuid", "name")
        listed = ", ".join(f"'{uuid}' ({name})" for uuid, name in choices)
        raise Invalid(f"'{strategy.name}' strategy does relate to the '{goal.name}' goal. Possible choices: {listed}")
    return strategy
