"""The planner of strategies that say themselves which actions wait for which."""

from collections.abc import Sequence

from actions.proposals import ProposedAction
from audits.strategies.base import SolutionAction


def plan_as_told(actions: Sequence[SolutionAction]) -> list[ProposedAction]:
    """Let each action wait for those that it stands after, which come before it, and for no others."""
    planned: list[ProposedAction] = []
    for action in actions:
        parents = [planned[place].uuid for place in action.after]
        planned.append(ProposedAction(action.action_type, action.input_parameters, parents))
    return planned
