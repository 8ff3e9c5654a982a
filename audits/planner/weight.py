"""Watcher's weight planner, with its tables as settings (docs/compatibility.md, "Planners")."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from django.conf import settings

from actions.graph.proposals import ProposedAction
from audits.planner.proposing import propose_action
from audits.strategies.base import SolutionAction
from watcher_site.refusals import Invalid


def plan_by_weight(actions: Sequence[SolutionAction]) -> list[ProposedAction]:
    """Order actions by the weight of their type, heaviest first, in chunks that wait for each other.

    A chunk holds as many actions of one type as may run at once; all its actions wait for all of the chunk before.
    `settings.PLANNER_WEIGHTS` and `settings.PLANNER_PARALLELIZATION` are the tables.

    Raises:
        Invalid: a type has no weight.
    """
    planned: list[ProposedAction] = []
    before: list[ProposedAction] = []
    for chunk in chunks(actions):
        before = [propose_action(action, before) for action in chunk]
        planned += before
    return planned


def chunks(actions: Sequence[SolutionAction]) -> Iterator[Sequence[SolutionAction]]:
    for action_type, same in groupby(sorted(actions, key=weigh), key=lambda action: action.action_type):
        queue, at_once = list(same), settings.PLANNER_PARALLELIZATION.get(action_type, 1)
        yield from (queue[start : start + at_once] for start in range(0, len(queue), at_once))


def weigh(action: SolutionAction) -> int:
    """Return the sort key of an action: heavier types come first, and equal ones stay in their order."""
    try:
        return -settings.PLANNER_WEIGHTS[action.action_type]
    except KeyError:
        raise Invalid(f"Action type {action.action_type} has no weight, so that it cannot be planned.") from None
