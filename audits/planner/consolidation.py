"""The planner that empties nodes: closed first, emptied one server of each at a time, and then opened."""

from collections.abc import Sequence

from actions.graph.proposals import ProposedAction
from audits.planner.proposing import propose_action
from audits.strategies.base import SolutionAction
from watcher_site.refusals import Invalid

SERVICE, MIGRATE = "change_nova_service_state", "migrate"


def plan_consolidation(actions: Sequence[SolutionAction]) -> list[ProposedAction]:
    """Plan a node's migrations in sequence, after all actions that disable nodes and before those that enable them.

    Raises:
        Invalid: an action is neither a migration nor a change of a compute service.
    """
    for action in actions:
        if action.action_type not in {SERVICE, MIGRATE}:
            raise Invalid(f"Action type {action.action_type} cannot be planned for this strategy.")
    services = [action for action in actions if action.action_type == SERVICE]
    closings = [propose_action(action) for action in services if action.input_parameters["state"] == "disabled"]
    openings = [action for action in services if action.input_parameters["state"] != "disabled"]
    migrations: list[ProposedAction] = []
    last: dict[str, ProposedAction] = {}
    for action in actions:
        if action.action_type == MIGRATE:
            source = action.input_parameters["source_node"]
            before = [last[source]] if source in last else []
            last[source] = propose_action(action, [*closings, *before])
            migrations.append(last[source])
    return [*closings, *migrations, *(propose_action(action, list(last.values())) for action in openings)]
