"""An action that a strategy asks for, with the parents that a planner gives it."""

from collections.abc import Iterable

from actions.graph.proposals import ProposedAction
from audits.strategies.base import SolutionAction


def propose_action(action: SolutionAction, parents: Iterable[ProposedAction] = ()) -> ProposedAction:
    return ProposedAction(
        action.action_type,
        action.input_parameters,
        [parent.uuid for parent in parents],
        timeout=action.timeout,
        name=action.name,
    )
