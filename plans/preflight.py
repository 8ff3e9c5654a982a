"""The preflight of a plan: run its actions on a model of the cloud, to find which would be skipped or fail."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import itemgetter
from uuid import UUID

from actions.engine.children import COLUMNS
from actions.engine.dry_run import DryRun, Foresight
from actions.event_details import generic_message
from actions.exclusions.matching import Match, excluded_now
from actions.graph.propagation import WITHOUT_SUCCESS, end_with, not_executed_message
from actions.graph.proposals import ProposedAction
from actions.messages import WOULD_BE_SKIPPED, WOULD_FAIL
from actions.models import FAILED_IN, NOT_EXECUTED, SKIPPED_AUTOMATICALLY, Action, ActionParent
from actions.models.naming import generated_name
from actions.types.base import DerivedAction
from actions.types.nodes.nodes import NodeAction
from actions.types.stacks.resources import ResourceAction
from actions.types.stacks.stacks import StackAction
from actions.types.stacks.steps import propose_within
from cluster.drivers.base import cloud, using_cloud
from cluster.models import Synchronization
from cluster.operations.named_records import is_uuid
from cluster.simulated import SimulatedCloud
from plans.models import ActionPlan
from plans.models.preflight_results import OUTCOMES, UNKNOWN
from plans.models.refusals import PlanOperation, require_plan_allowing
from plans.planning.completion import STUCK
from plans.planning.continuation import has_base_type
from watcher_site import plugins

State = Action.State
STACK_ACTIONS = (StackAction, ResourceAction)
WRITTEN_FIRST = (NodeAction, ResourceAction)
NOTHING_EXCLUDED: Mapping[UUID, Match] = {}

# The beginnings of messages about past events, with their replacements in a preflight.
FUTURE_TEXTS = {
    SKIPPED_AUTOMATICALLY: WOULD_BE_SKIPPED.opening,
    FAILED_IN: WOULD_FAIL.opening,
    NOT_EXECUTED: "would not be executed:",
}


@dataclass(frozen=True)
class Prospect:
    """An unfinished action with its predicted end. The action was changed in memory, and must not be saved."""

    action: Action
    foresight: Foresight

    @property
    def outcome(self) -> str:
        return str(self.foresight.state or UNKNOWN)

    @property
    def predicted_message(self) -> str:
        """Return the message of the action in a form for a future event."""
        message = self.foresight.message or ""
        for past, future in FUTURE_TEXTS.items():
            if message.startswith(past):
                return f"{future}{message.removeprefix(past)}"
        return message

    @property
    def is_unsuccessful(self) -> bool:
        """Return whether the action would not succeed."""
        return self.foresight.state != State.SUCCEEDED


@dataclass(frozen=True)
class Preflight:
    """The results of a plan's actions, in the order in which one worker would execute them.

    ``ended`` is the number of finished actions by state. ``is_mirrored`` means that the tables are a copy of a real
    cloud, which was last read completely at ``read_at``.
    """

    prospects: Sequence[Prospect]
    ended: Mapping[str, int]
    is_mirrored: bool = False
    read_at: datetime | None = None

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of actions with each of the `OUTCOMES`."""
        counts = Counter(prospect.outcome for prospect in self.prospects)
        return {str(outcome): counts[outcome] for outcome in OUTCOMES}

    @property
    def unsuccessful(self) -> list[Prospect]:
        return [prospect for prospect in self.prospects if prospect.is_unsuccessful]


def preflight(plan: ActionPlan, *, details: bool = True) -> Preflight:
    """Predict the ends of the unfinished actions of a plan, in order, each on the cloud as the previous ones leave it.

    The number of queries does not depend on the size of the cloud and the plan, except for a few more for each
    operation on a cluster or a stack. Writes no rows.

    Args:
        details: whether messages may contain the errors of derived actions.

    Raises:
        Conflict: no more actions of the plan begin.
    """
    require_plan_allowing(PlanOperation.PREFLIGHT, plan)
    actions = {action.pk: action for action in Action.objects.filter(action_plan=plan).unfinished().order_by("pk")}
    ended = {state: count for state, count in plan.actions.all().count_states().items() if state in Action.FINAL}
    run = PreflightRun(plan, actions, parents_among(plan, actions), excluded_now(pending_actions(actions)))
    run.record_ended_parents(ended_parents(plan))
    if any(action.has_planned for action in actions.values()):
        run.record_ended_derived(ended_derived(plan, details))
    return Preflight(run.prospects(), ended, *freshness())


def pending_actions(actions: Mapping[int, Action]) -> list[Action]:
    return [action for action in actions.values() if action.state == State.PENDING and not action.has_derived]


def freshness() -> tuple[bool, datetime | None]:
    """Return whether the tables are a copy of a real cloud, and the time of the last complete synchronization."""
    if not cloud().is_mirrored:
        return False, None
    return True, Synchronization.objects.values_list("succeeded_at", flat=True).first()


def parents_among(plan: ActionPlan, actions: Mapping[int, Action]) -> dict[int, list[int]]:
    """Return the parents of each of these actions that are also among them, by key."""
    parents: dict[int, list[int]] = {key: [] for key in actions}
    links = ActionParent.objects.filter(child__action_plan=plan).exclude(child__state__in=Action.FINAL)
    for child, parent in links.values_list("child", "parent"):
        if child in actions and parent in actions:
            parents[child].append(parent)
    return parents


def ended_parents(plan: ActionPlan) -> list[tuple[int, int, UUID, str]]:
    """Return the pending actions with their unsuccessful parents: child, parent, its UUID and its state.

    The parents are in the order of their ends. Without ``on_failure: stop``, the list is empty.
    """
    if plan.on_failure != ActionPlan.OnFailure.STOP:
        return []
    links = ActionParent.objects.filter(child__action_plan=plan, child__state=State.PENDING)
    ended = links.filter(parent__state__in=WITHOUT_SUCCESS, parent__deleted_at=None)
    in_order_of_end = ended.order_by("parent__updated_at", "parent", "child")
    return list(in_order_of_end.values_list("child", "parent", "parent__uuid", "parent__state"))


def ended_derived(plan: ActionPlan, details: bool) -> list[tuple[int, DerivedAction]]:
    """Return the planned derived actions that have ended, each with the key of its origin."""
    derived = plan.actions.present().filter(derived_from__isnull=False, state__in=Action.FINAL)
    rows = derived.order_by("pk").values_list("derived_from", *COLUMNS)
    found = [(origin, DerivedAction(*row)) for origin, *row in rows]
    if details:
        return found
    return [(key, replace(one, status_message=generic_message(one.state, one.status_message))) for key, one in found]


class PreflightRun:
    """The prediction of a plan: it visits each unfinished action after its parents."""

    def __init__(
        self,
        plan: ActionPlan,
        actions: Mapping[int, Action],
        parents: Mapping[int, Sequence[int]],
        excluded: Mapping[UUID, Match] = NOTHING_EXCLUDED,
    ) -> None:
        self.plan, self.actions, self.parents, self.excluded = plan, actions, parents, excluded
        self.ended_parents: dict[int, list[int]] = defaultdict(list)
        self.model = SimulatedCloud.load()
        self.ends: dict[int, tuple[int, Foresight]] = {}
        """By the key of an action that ends its dependents: its position in time, and the end of the dependents."""
        self.derived: dict[int, list[int]] = defaultdict(list)
        """The planned actions, by their origin."""
        self.derived_ends: dict[int, list[DerivedAction]] = defaultdict(list)
        """The derived actions with their actual or predicted ends, by their origin."""
        self.looked_up: dict[tuple[str, str], Match | None] = {}
        """The exclusions of actions that are in no table, by action type and target."""
        self.foreseen: dict[int, Foresight] = {}
        self.underived: dict[int, Foresight] = {}
        """By the key of an action that ends without deriving its planned actions: the end of these."""

    def record_ended_parents(self, links: Iterable[tuple[int, int, UUID, str]]) -> None:
        """Record the ended parents and their states, to end their dependents."""
        for child, parent, uuid, state in links:
            self.ended_parents[child].append(parent)
            self.ends.setdefault(parent, (len(self.ends), Foresight(State(state), not_executed_message(uuid, state))))

    def record_ended_derived(self, ended: Iterable[tuple[int, DerivedAction]]) -> None:
        for origin, one in ended:
            self.derived_ends[origin].append(one)

    def prospects(self) -> list[Prospect]:
        order = execution_order(self.actions, self.parents)
        for key in order:
            if origin := self.actions[key].derived_from_id:
                self.derived[origin].append(key)
        self.load_targets()
        with using_cloud(self.model):
            for key in order:
                self.foresee_with_planned(key)
        found = [Prospect(self.actions[key], self.foreseen[key]) for key in order]
        stuck = self.actions.keys() - set(order)
        return found + [Prospect(self.actions[key], Foresight(State.CANCELLED, STUCK)) for key in sorted(stuck)]

    def load_targets(self) -> None:
        """Read all nodes and trees of stacks that are targets of the actions of the plan."""
        types, members = plugins.load("ACTION_TYPES"), self.model.members
        members.ended |= {action.uuid for action in self.actions.values()}

        def targets(*bases: type) -> list[str]:
            concerned = (action for action in self.actions.values() if has_base_type(types, action, bases))
            return [target for action in concerned if is_uuid(target := str(action.target))]

        members.load(targets(NodeAction))
        self.model.stacks.load(targets(*STACK_ACTIONS))

    def foresee_with_planned(self, key: int) -> None:
        """Predict an action and the planned actions that it derives."""
        if key in self.foreseen:
            return
        action = self.actions[key]
        foresight = self.foresee_action(action)
        if foresight.derived is not None:
            self.match_rules([self.actions[one] for one in self.derived[key] if self.is_on_new_resource(one)])
            ends = self.derived_ends[key]
            for planned in self.derived[key]:
                self.foresee_with_planned(planned)
                ends.append(self.foreseen[planned].of(self.actions[planned]))
            foresight = self.foresee_with_derived(action, foresight, ends)
            self.record_result(action, foresight)
        self.foreseen[key] = foresight

    def foresee_with_derived(self, action: Action, foresight: Foresight, ends: list[DerivedAction]) -> Foresight:
        """Predict the unplanned actions that an action derives, and then the action itself."""
        while foresight.dry_run:
            ends += self.foresee_new(action, foresight.derived or ())
            foresight = foresight.dry_run.continue_after(ends)
        return foresight

    def foresee_new(self, origin: Action, proposed: Sequence[ProposedAction]) -> list[DerivedAction]:
        """Predict actions that are in no table, in the order of their proposal, each after its parents."""
        new = [make_unsaved_action(one, origin) for one in proposed]
        self.match_rules(new)
        bad: dict[UUID, Foresight] = {}
        found = []
        for one, action in zip(proposed, new, strict=True):
            inherited = next((bad[parent] for parent in one.parents if parent in bad), None)
            match = self.looked_up[rule_key(action)]
            end = inherited or (excluded_foresight(action, match) if match else DryRun(action).foresee())
            if end.derived is not None:
                end = self.foresee_with_derived(action, end, [])
            if end.state in WITHOUT_SUCCESS:
                bad[one.uuid] = inherited or Foresight(*end_with(one.uuid, str(end.state)))
            found.append(end.of(action))
        return found

    def match_rules(self, new: Sequence[Action]) -> None:
        """Find the exclusions of actions that are in no table, and of the actions that these derive within stacks."""
        unknown = [action for action in new if rule_key(action) not in self.looked_up]
        if not unknown:
            return
        within = [make_unsaved_action(one, action) for action in unknown for one in propose_within(action.data)]
        excluded = excluded_now([self.with_stored_target(one) for one in [*unknown, *within]])
        self.looked_up |= {rule_key(one): excluded.get(one.uuid) for one in [*unknown, *within]}

    def inherit_end(self, action: Action) -> Foresight | None:
        """Return the end of an action that is not executed because of a parent or its origin, and record it."""
        if action.has_derived or action.state != State.PENDING:
            return None
        key = action.pk
        parents = (*self.ended_parents[key], *self.parents[key])
        if inherited := [self.ends[parent] for parent in parents if parent in self.ends]:
            # The first parent that ended determines the end of the action.
            self.ends[key] = min(inherited, key=itemgetter(0))
            self.underived[key] = self.ends[key][1]
        elif action.derived_from_id in self.underived:
            self.underived[key] = self.underived[action.derived_from_id]
        return self.underived.get(key)

    def foresee_action(self, action: Action) -> Foresight:
        if inherited := self.inherit_end(action):
            return inherited
        origin = self.foreseen.get(action.derived_from_id) if action.derived_from_id else None
        if origin and origin.state is None and has_base_type(plugins.load("ACTION_TYPES"), action, WRITTEN_FIRST):
            # Its origin may create its target.
            return Foresight(None, f"It follows from the action that is to derive it. {origin.message}")
        match = self.excluded.get(action.uuid) or self.looked_up.get(rule_key(action))
        foresight = (
            excluded_foresight(action, match) if match else DryRun(action, self.planned_actions_of(action)).foresee()
        )
        self.record_result(action, foresight)
        return foresight

    def is_on_new_resource(self, key: int) -> bool:
        return self.model.stacks.find_new(str(self.actions[key].target)) is not None

    def with_stored_target(self, action: Action) -> Action:
        """Return an action on the root stack instead of a resource in no table: both affect the same project only."""
        resource = self.model.stacks.find_new(str(action.target))
        if resource is None:
            return action
        root = resource.stack.root or resource.stack
        inputs = {**action.input_parameters, "resource_id": str(root.uuid)}
        return Action(uuid=action.uuid, action_type=action.action_type, input_parameters=inputs)

    def planned_actions_of(self, action: Action) -> Sequence[DerivedAction]:
        """Return the planned derived actions of an action, before it begins."""
        waiting = [self.actions[key] for key in self.derived[action.pk]]
        return [*self.derived_ends[action.pk], *(Foresight(one.state).of(one) for one in waiting)]

    def record_result(self, action: Action, foresight: Foresight) -> None:
        """Record the consequences of the end of an action for its dependents and planned actions."""
        if foresight.state is None:
            return  # Its end cannot be predicted, or follows from its derived actions.
        ends_dependents = foresight.state in WITHOUT_SUCCESS and self.ends_dependents(action)
        if not (action.is_to_derive or ends_dependents):
            return
        end = Foresight(*end_with(action.uuid, foresight.state))
        if action.is_to_derive:
            self.underived[action.pk] = end
        if ends_dependents:
            self.ends[action.pk] = len(self.ends), end

    def ends_dependents(self, action: Action) -> bool:
        """Return whether the dependents of an action end with it."""
        return action.derived_from_id is not None or self.plan.on_failure == ActionPlan.OnFailure.STOP


def make_unsaved_action(proposed: ProposedAction, origin: Action) -> Action:
    """Return an action that another action would derive. It must not be saved."""
    action = Action(
        uuid=proposed.uuid,
        name=proposed.name or generated_name(proposed.action_type, proposed.uuid),
        action_type=proposed.action_type,
        input_parameters=dict(proposed.input_parameters),
        data=dict(proposed.data),
        action_plan_id=origin.action_plan_id,
        derived_from_id=origin.pk or origin.derived_from_id,
    )
    action.target = action.make_target()
    return action


def rule_key(action: Action) -> tuple[str, str]:
    return action.action_type, str(action.input_parameters.get("resource_id"))


def excluded_foresight(action: Action, match: Match) -> Foresight:
    action.exclude(match.rule.key, match.rule.message)
    return Foresight(action.state, action.status_message)


def execution_order(actions: Mapping[int, Action], parents: Mapping[int, Iterable[int]]) -> list[int]:
    """Return the keys in the order in which one worker would execute the actions.

    Running actions come first, then the generations of the graph, each sorted by key. Actions in cycles are omitted.
    """
    children = defaultdict(list)
    waiting = dict.fromkeys(actions, 0)
    for child, its in parents.items():
        for parent in its:
            children[parent].append(child)
            waiting[child] += 1
    order: list[int] = []
    generation = [key for key, number in waiting.items() if not number]
    while generation:
        order += sorted(generation, key=lambda key: (actions[key].state == State.PENDING, key))
        released = []
        for parent in generation:
            for child in children[parent]:
                waiting[child] -= 1
                if not waiting[child]:
                    released.append(child)
        generation = released
    return order
