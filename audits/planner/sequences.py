"""The planner of strategies that do several things to each of many: in turn to each, and to all at once."""

from collections.abc import Sequence

from actions.proposals import ProposedAction
from audits.planner.proposing import propose
from audits.strategies.base import SolutionAction


def plan_sequences(actions: Sequence[SolutionAction]) -> list[ProposedAction]:
    """Let the actions on one thing follow each other in their order, and wait for no others."""
    planned: list[ProposedAction] = []
    last: dict[str, ProposedAction] = {}
    for action in actions:
        acted_on = str(action.input_parameters.get("resource_id", ""))
        parents = [last[acted_on]] if acted_on in last else []
        planned.append(propose(action, parents))
        last[acted_on] = planned[-1]
    return planned
