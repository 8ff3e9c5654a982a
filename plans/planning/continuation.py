"""The continuation of an ended plan: a new plan with the actions that did not succeed, with current timeouts."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from graphlib import CycleError, TopologicalSorter
from operator import or_
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction

from actions.graph.propagation import skip_planned
from actions.graph.proposals import BATCH, ProposedAction
from actions.models import Action, ActionParent, may_be_restored
from actions.models.naming import generated_name
from actions.types.clusters.clusters import ClusterAction
from actions.types.stacks.resources import ResourceAction
from actions.types.stacks.stacks import StackAction
from cluster.models import Cluster, Stack
from cluster.operations.named_records import is_uuid
from plans import messages
from plans.models import ActionPlan
from plans.models.refusals import PlanOperation, require_plan_allowing
from plans.planning.proposals import propose
from plans.planning.scheduling import inherited_schedule
from watcher_site import plugins
from watcher_site.history import record
from watcher_site.outbox.writing import announce_changes
from watcher_site.refusals import Conflict

# If thousands of actions depend on thousands through one that succeeded, the number of dependencies is their product.
MOST_EDGES = 250_000
# The types of actions that take their timeout from their target, with the model of the target.
TIMED_BY: tuple[tuple[type[Any], type[Any]], ...] = ((ClusterAction, Cluster), (StackAction, Stack))


@transaction.atomic
def continue_plan(plan: ActionPlan) -> ActionPlan:
    """Propose a plan of the actions that a FAILED or CANCELLED plan did not complete, and return it.

    The actions keep their dependencies, including indirect ones through actions that succeeded or were skipped.
    Derived actions are not copied, because the repeated action derives them again. Planned derived actions are
    planned again if they were not completed, or were skipped by a user. Each action has the data with which it was
    proposed, unless `data_anew` of its type returns other data, and the current timeout of its cluster or stack. Times
    of the schedule that are not past apply again. A plan can be continued once, until its continuation is deleted.

    Raises:
        NotFound: the plan was deleted.
        Conflict: its state does not allow it, it was already continued, or no action is left.
    """
    current = ActionPlan.objects.locked().find(plan.uuid)
    require_plan_allowing(PlanOperation.CONTINUE, current)
    if successor := current.continuation():
        raise Conflict(messages.CONTINUED.fill(uuid=plan.uuid, successor=successor.uuid))
    actions = find_unsuccessful_actions(current)
    if not actions:
        raise Conflict(messages.NOTHING_TO_CONTINUE.fill(uuid=plan.uuid))
    proposed = copy_proposals(actions, dependencies(current, [action.pk for action in actions]))
    continuation = propose(
        proposed,
        audit_id=current.audit_id,
        strategy_id=current.strategy_id,
        continues=current,
        on_failure=current.on_failure,
        schedule=inherited_schedule(current),
    )
    repeat_skips(dict(zip([one.uuid for one in proposed], actions, strict=True)))
    record("action_plan.continue", current, details={"action_plan": continuation.uuid})
    return continuation


def find_unsuccessful_actions(plan: ActionPlan) -> list[Action]:
    """Return the actions to repeat, each after its origin."""
    kept: dict[int, Action] = {}
    skipped = plan.actions.present().filter(is_planned=True, state=Action.State.SKIPPED)
    for action in (plan.actions.not_achieved() | skipped).order_by("pk"):
        origin = action.derived_from_id
        if origin is None or (action.is_planned and origin in kept and is_planned_again(action, kept[origin])):
            kept[action.pk] = action
    return list(kept.values())


def is_planned_again(planned: Action, origin: Action) -> bool:
    """Return whether a planned action is planned again. An action that skipped itself as unnecessary is not."""
    is_skipped = planned.state == Action.State.SKIPPED
    return not is_skipped or may_be_restored(planned) or origin.state == Action.State.SKIPPED


def repeat_skips(sources: Mapping[UUID, Action]) -> None:
    """Skip the planned actions that a user skipped in the earlier plan, so that they are not derived again."""
    skipped = {uuid: source for uuid, source in sources.items() if source.skipped_by is not None}
    # The other actions were skipped by an exclusion when the plan was created.
    actions = list(Action.objects.pending().filter(uuid__in=skipped))
    for action in actions:
        source = skipped[action.uuid]
        action.skip(source.skipped_by, source.reason)
    Action.objects.bulk_update(actions, ["state", "skipped_by", "reason", "status_message"], batch_size=BATCH)
    announce_changes(
        Action.notified_as, [(action.pk, Action.State.PENDING) for action in actions], Action.State.SKIPPED
    )
    skip_planned(actions)


def copy_proposals(actions: Sequence[Action], parents: Sequence[Iterable[int]]) -> list[ProposedAction]:
    """Return the actions as proposals. ``parents`` has the indexes of the parents of each."""
    uuids: list[UUID] = [uuid4() for _ in actions]
    new = {action.pk: uuid for action, uuid in zip(actions, uuids, strict=True)}
    timeouts = current_timeouts(actions)
    return [
        ProposedAction(
            action_type=action.action_type,
            input_parameters=action.input_parameters,
            parents=[uuids[place] for place in parents[number]],
            uuid=uuids[number],
            timeout=timeouts[action.pk],
            name=proposed_name(action),
            derived_from=new[action.derived_from_id] if action.derived_from_id else None,
            data=copy_action_data(action),
        )
        for number, action in enumerate(actions)
    ]


def copy_action_data(action: Action) -> dict[str, Any]:
    proposed: dict[str, Any] = action.initial_data or {}
    action_type = plugins.load("ACTION_TYPES").get(action.action_type)
    return action_type.data_anew(proposed, action.data or {}) if action_type else proposed


def proposed_name(action: Action) -> str:
    """Return the name with which an action was proposed, or an empty text if its name was generated from its UUID."""
    return "" if action.name == generated_name(action.action_type, action.uuid) else action.name


def current_timeouts(actions: Sequence[Action]) -> dict[int, int | None]:
    """Return the timeout of each action in seconds by primary key. None is the default of the site.

    An action on a cluster or a stack has the current timeout of this object. Planned actions on resources of a stack
    have the timeout of their origin. All others keep theirs. ``actions`` has each action after its origin.
    """
    types = plugins.load("ACTION_TYPES")
    timeouts: dict[int, int | None] = {action.pk: action.timeout for action in actions}
    for base, model in TIMED_BY:
        timed = [action for action in actions if has_base_type(types, action, base)]
        targets = {str(action.target) for action in timed if is_uuid(str(action.target))}
        records = {str(one.uuid): one for one in model.objects.filter(uuid__in=targets)} if targets else {}
        for action in timed:
            if found := records.get(str(action.target)):
                timeouts[action.pk] = own_timeout(action) or found.seconds_allowed
    for action in actions:
        if action.derived_from_id in timeouts and has_base_type(types, action, ResourceAction):
            timeouts[action.pk] = timeouts[action.derived_from_id]
    return timeouts


def has_base_type(types: Any, action: Action, base: type[Any] | tuple[type[Any], ...]) -> bool:
    installed = types.get(action.action_type)
    return installed is not None and issubclass(installed, base)


def own_timeout(action: Action) -> int | None:
    """Return the timeout, in seconds, that an operation on a stack sets for itself and later operations."""
    minutes = action.input_parameters.get("timeout_mins")
    return minutes and int(minutes) * 60


def dependencies(plan: ActionPlan, kept: Sequence[int]) -> list[list[int]]:
    """Return for each kept action the indexes of the kept actions on which it depends, directly or through others.

    Raises:
        Conflict: there are too many dependencies, or they form a cycle.
    """
    nearest = nearest_kept_parents(parents_by_action(plan), {key: place for place, key in enumerate(kept)})
    masks = [nearest[key] for key in kept]
    if sum(mask.bit_count() for mask in masks) > MOST_EDGES:
        raise Conflict(messages.TOO_MANY_DEPENDENCIES.fill(uuid=plan.uuid))
    return [set_bits(mask) for mask in masks]


def parents_by_action(plan: ActionPlan) -> dict[int, list[int]]:
    """Return the parents of each action by key, without the edges between actions and their derived actions."""
    parents: dict[int, list[int]] = {key: [] for key in plan.actions.values_list("pk", flat=True)}
    edges = ActionParent.objects.filter(child__action_plan=plan)
    for child, origin, parent, its_origin in edges.values_list(
        "child", "child__derived_from", "parent", "parent__derived_from"
    ):
        if origin != parent and its_origin != child:
            parents[child].append(parent)
    return parents


def nearest_kept_parents(parents: dict[int, list[int]], places: dict[int, int]) -> dict[int, int]:
    """Return for each action the nearest kept actions on which it depends, as the bits of a number.

    Sets of keys would need too much memory for large plans.
    """
    nearest: dict[int, int] = {}
    try:
        for key in TopologicalSorter(parents).static_order():
            masks = (1 << places[parent] if parent in places else nearest[parent] for parent in parents[key])
            nearest[key] = reduce(or_, masks, 0)
    except CycleError as problem:
        raise Conflict(messages.CYCLE_IN_CONTINUATION.text) from problem
    return nearest


def set_bits(number: int) -> list[int]:
    return [place for place, digit in enumerate(reversed(f"{number:b}")) if digit == "1"]
