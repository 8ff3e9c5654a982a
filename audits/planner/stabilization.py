"""The planner of strategies that balance loads: everything at once, but for servers that are resized."""

from collections import defaultdict
from collections.abc import Sequence

from actions.graph.proposals import ProposedAction
from audits.planner.proposing import propose_action
from audits.strategies.base import SolutionAction
from watcher_site.refusals import Invalid

WEIGHTS = {"nop": 5, "change_nova_service_state": 4, "sleep": 3, "migrate": 2, "resize": 1}


def plan_stabilization(actions: Sequence[SolutionAction]) -> list[ProposedAction]:
    """Order actions by the weight of their type; a resize waits for all that happens to its server before.

    Raises:
        Invalid: a type has no weight.
    """
    for action in actions:
        if action.action_type not in WEIGHTS:
            raise Invalid(f"Action type {action.action_type} cannot be planned for this strategy.")
    earlier: defaultdict[str, list[ProposedAction]] = defaultdict(list)
    planned: list[ProposedAction] = []
    for action in sorted(actions, key=lambda action: -WEIGHTS[action.action_type]):
        server = action.input_parameters.get("resource_id", "")
        parents = list(earlier[server]) if action.action_type == "resize" else []
        planned.append(propose_action(action, parents))
        earlier[server].append(planned[-1])
    return planned
