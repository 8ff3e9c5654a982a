"""Planners, which convert the actions of a solution into proposed actions with parents."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from django.conf import settings

from actions.graph.proposals import ProposedAction
from audits import messages
from audits.strategies.base import SolutionAction
from watcher_site.refusals import Invalid

Planner = Callable[[Sequence[SolutionAction]], list[ProposedAction]]
SERVICE, MIGRATE = "change_nova_service_state", "migrate"
STABILIZATION_WEIGHTS = {"nop": 5, SERVICE: 4, "sleep": 3, MIGRATE: 2, "resize": 1}


def propose_action(action: SolutionAction, parents: Iterable[ProposedAction] = ()) -> ProposedAction:
    return ProposedAction(
        action.action_type,
        action.input_parameters,
        [parent.uuid for parent in parents],
        timeout=action.timeout,
        name=action.name,
    )


def plan_by_weight(actions: Sequence[SolutionAction]) -> list[ProposedAction]:
    """Order actions by descending weight of their type, in chunks of the size of its parallelization.

    This is Watcher's planner (docs/compatibility.md, "Planners"). All actions of a chunk depend on all actions of the
    previous chunk.
    `settings.PLANNER_WEIGHTS` and `settings.PLANNER_PARALLELIZATION` are the tables.

    Raises:
        Invalid: a type has no weight.
    """
    planned: list[ProposedAction] = []
    before: list[ProposedAction] = []
    for chunk in split_chunks(actions):
        before = [propose_action(action, before) for action in chunk]
        planned += before
    return planned


def split_chunks(actions: Sequence[SolutionAction]) -> Iterator[Sequence[SolutionAction]]:
    for action_type, same in groupby(sorted(actions, key=weigh), key=lambda action: action.action_type):
        queue, at_once = list(same), settings.PLANNER_PARALLELIZATION.get(action_type, 1)
        yield from (queue[start : start + at_once] for start in range(0, len(queue), at_once))


def weigh(action: SolutionAction) -> int:
    """Return the sort key of an action: types with greater weights come first."""
    try:
        return -settings.PLANNER_WEIGHTS[action.action_type]
    except KeyError:
        raise Invalid(messages.TYPE_WITHOUT_WEIGHT.fill(type=action.action_type)) from None


def plan_consolidation(actions: Sequence[SolutionAction]) -> list[ProposedAction]:
    """Disable nodes, then migrate the servers of each node in sequence, then enable nodes.

    Strategies that empty nodes use this planner.

    Raises:
        Invalid: an action is neither a migration nor a change of a compute service.
    """
    for action in actions:
        if action.action_type not in {SERVICE, MIGRATE}:
            raise Invalid(messages.TYPE_NOT_PLANNED.fill(type=action.action_type))
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


def plan_stabilization(actions: Sequence[SolutionAction]) -> list[ProposedAction]:
    """Run all actions in parallel, except that a resize depends on the other actions on the same server.

    Strategies that balance loads use this planner.

    Raises:
        Invalid: a type is not in `STABILIZATION_WEIGHTS`.
    """
    for action in actions:
        if action.action_type not in STABILIZATION_WEIGHTS:
            raise Invalid(messages.TYPE_NOT_PLANNED.fill(type=action.action_type))
    earlier: defaultdict[str, list[ProposedAction]] = defaultdict(list)
    planned: list[ProposedAction] = []
    for action in sorted(actions, key=lambda action: -STABILIZATION_WEIGHTS[action.action_type]):
        server = action.input_parameters.get("resource_id", "")
        parents = list(earlier[server]) if action.action_type == "resize" else []
        planned.append(propose_action(action, parents))
        earlier[server].append(planned[-1])
    return planned


def plan_sequences(actions: Sequence[SolutionAction]) -> list[ProposedAction]:
    """Run the actions on each resource in sequence, and actions on different resources in parallel."""
    planned: list[ProposedAction] = []
    last: dict[str, ProposedAction] = {}
    for action in actions:
        resource = str(action.input_parameters.get("resource_id", ""))
        parents = [last[resource]] if resource in last else []
        planned.append(propose_action(action, parents))
        last[resource] = planned[-1]
    return planned


def plan_explicitly(actions: Sequence[SolutionAction]) -> list[ProposedAction]:
    """Use the parents that the strategy specifies."""
    planned: list[ProposedAction] = []
    for action in actions:
        planned.append(propose_action(action, [planned[position] for position in action.after]))
    return planned


PLANNERS: dict[str, Planner] = {
    "weight": plan_by_weight,
    "workload_stabilization": plan_stabilization,
    "node_resource_consolidation": plan_consolidation,
    "sequences": plan_sequences,
    "explicit": plan_explicitly,
}
