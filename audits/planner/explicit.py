"""The planner of strategies that say themselves which actions wait for which."""

from collections.abc import Sequence

from actions.graph.proposals import ProposedAction
from audits.planner.proposing import propose_action
from audits.strategies.base import SolutionAction


def plan_explicitly(actions: Sequence[SolutionAction]) -> list[ProposedAction]:
    """Give each action the parents that the solution names, which come before it."""
    planned: list[ProposedAction] = []
    for action in actions:
        planned.append(propose_action(action, [planned[place] for place in action.after]))
    return planned
