"""The planner for several actions on each of many objects: in sequence for one object, in parallel otherwise."""

from collections.abc import Sequence

from actions.graph.proposals import ProposedAction
from audits.planner.proposing import propose_action
from audits.strategies.base import SolutionAction


def plan_sequences(actions: Sequence[SolutionAction]) -> list[ProposedAction]:
    """Give each action the previous action on the same object as its parent."""
    planned: list[ProposedAction] = []
    last: dict[str, ProposedAction] = {}
    for action in actions:
        acted_on = str(action.input_parameters.get("resource_id", ""))
        parents = [last[acted_on]] if acted_on in last else []
        planned.append(propose_action(action, parents))
        last[acted_on] = planned[-1]
    return planned
