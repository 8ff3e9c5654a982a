"""The preflight of a plan: run its actions on a model of the cloud, to find which would be skipped or fail."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from operator import attrgetter
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
    actions = Action.objects.filter(action_plan=plan).unfinished().order_by("pk")
    steps = {action.pk: Step(action) for action in actions}
    ended = {state: number for state, number in plan.actions.all().count_states().items() if state in Action.FINAL}
    add_parents(plan, steps)
    positions = count()
    if plan.on_failure == ActionPlan.OnFailure.STOP:
        add_ended_parents(plan, steps, positions)
    if any(step.action.has_planned for step in steps.values()):
        add_ended_derived(plan, steps, details)
    pending = [step.action for step in steps.values() if step.action.state == State.PENDING]
    excluded = excluded_now([action for action in pending if not action.has_derived])
    run = PreflightRun(plan, steps, excluded, positions)
    return Preflight(run.prospects(), ended, *freshness())


def freshness() -> tuple[bool, datetime | None]:
    """Return whether the tables are a copy of a real cloud, and the time of the last complete synchronization."""
    if not cloud().is_mirrored:
        return False, None
    return True, Synchronization.objects.values_list("succeeded_at", flat=True).first()


@dataclass(frozen=True)
class InheritedEnd:
    """The predicted end of the dependents of an action that ended without success.

    Of several parents, the first one that ended determines the end of an action.
    """

    position: int
    """The position of the action among the actions that end without success."""
    foresight: Foresight


@dataclass(eq=False, slots=True)
class Step:
    """An unfinished action during the preflight of its plan."""

    action: Action
    parents: list["Step"] = field(default_factory=list)
    """The unfinished parents."""
    ends_of_parents: list[InheritedEnd] = field(default_factory=list)
    """The ends that it inherits from parents that ended before the preflight."""
    planned: list["Step"] = field(default_factory=list)
    """The unfinished planned actions that it derives."""
    derived: list[DerivedAction] = field(default_factory=list)
    """The derived actions with their actual or predicted ends."""
    foresight: Foresight | None = None
    """The predicted end, once it is known."""
    end_of_dependents: InheritedEnd | None = None
    end_of_planned: Foresight | None = None
    """The end of its planned actions, if it ends without deriving them."""


def add_parents(plan: ActionPlan, steps: Mapping[int, Step]) -> None:
    """Add the unfinished parents of each step."""
    links = ActionParent.objects.filter(child__action_plan=plan).exclude(child__state__in=Action.FINAL)
    for child, parent in links.values_list("child", "parent"):
        if child in steps and parent in steps:
            steps[child].parents.append(steps[parent])


def add_ended_parents(plan: ActionPlan, steps: Mapping[int, Step], positions: Iterator[int]) -> None:
    """Add the ends that pending actions inherit from parents that ended without success."""
    links = ActionParent.objects.filter(child__action_plan=plan, child__state=State.PENDING)
    ended = links.filter(parent__state__in=WITHOUT_SUCCESS, parent__deleted_at=None)
    in_order_of_end = ended.order_by("parent__updated_at", "parent", "child")
    for child, parent, state in in_order_of_end.values_list("child", "parent__uuid", "parent__state"):
        if child in steps:
            end = Foresight(State(state), not_executed_message(parent, state))
            steps[child].ends_of_parents.append(InheritedEnd(next(positions), end))


def add_ended_derived(plan: ActionPlan, steps: Mapping[int, Step], details: bool) -> None:
    """Add the planned derived actions that have ended to the actions that derived them."""
    derived = plan.actions.present().filter(derived_from__isnull=False, state__in=Action.FINAL)
    for origin, *row in derived.order_by("pk").values_list("derived_from", *COLUMNS):
        one = DerivedAction(*row)
        if not details:
            one = replace(one, status_message=generic_message(one.state, one.status_message))
        if origin in steps:
            steps[origin].derived.append(one)


class PreflightRun:
    """The prediction of a plan: it visits each unfinished action after its parents."""

    def __init__(
        self, plan: ActionPlan, steps: Mapping[int, Step], excluded: Mapping[UUID, Match], positions: Iterator[int]
    ) -> None:
        self.plan, self.steps, self.excluded, self.positions = plan, steps, excluded, positions
        self.model = SimulatedCloud.load()
        self.looked_up: dict[tuple[str, str], Match | None] = {}
        """The exclusions of actions that are in no table, by action type and target."""

    def prospects(self) -> list[Prospect]:
        order = execution_order(self.steps.values())
        for step in order:
            if origin := self.origin_of(step):
                origin.planned.append(step)
        self.load_targets()
        with using_cloud(self.model):
            found = [Prospect(step.action, self.foresee_with_planned(step)) for step in order]
        stuck = self.steps.keys() - {step.action.pk for step in order}
        stuck_end = Foresight(State.CANCELLED, STUCK)
        return found + [Prospect(self.steps[key].action, stuck_end) for key in sorted(stuck)]

    def origin_of(self, step: Step) -> Step | None:
        """Return the unfinished action that derives an action, or None."""
        key = step.action.derived_from_id
        return self.steps.get(key) if key else None

    def load_targets(self) -> None:
        """Read all nodes and trees of stacks that are targets of the actions of the plan."""
        types, members = plugins.load("ACTION_TYPES"), self.model.members
        actions = [step.action for step in self.steps.values()]
        members.ended |= {action.uuid for action in actions}

        def targets(*bases: type) -> list[str]:
            concerned = (action for action in actions if has_base_type(types, action, bases))
            return [target for action in concerned if is_uuid(target := str(action.target))]

        members.load(targets(NodeAction))
        self.model.stacks.load(targets(*STACK_ACTIONS))

    def foresee_with_planned(self, step: Step) -> Foresight:
        """Predict an action and the planned actions that it derives, unless they were predicted before."""
        if step.foresight:
            return step.foresight
        foresight = self.foresee_step(step)
        if foresight.derived is not None:
            self.match_rules([planned.action for planned in step.planned if self.is_on_new_resource(planned.action)])
            for planned in step.planned:
                step.derived.append(self.foresee_with_planned(planned).of(planned.action))
            foresight = self.foresee_with_derived(step.action, foresight, step.derived)
            self.record_result(step, foresight)
        step.foresight = foresight
        return foresight

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

    def inherit_end(self, step: Step) -> Foresight | None:
        """Return the end of an action that is not executed because of a parent or its origin, and record it."""
        if step.action.has_derived or step.action.state != State.PENDING:
            return None
        inherited = [*step.ends_of_parents, *filter(None, (parent.end_of_dependents for parent in step.parents))]
        origin = self.origin_of(step)
        if inherited:
            step.end_of_dependents = min(inherited, key=attrgetter("position"))
            step.end_of_planned = step.end_of_dependents.foresight
        elif origin:
            step.end_of_planned = origin.end_of_planned
        return step.end_of_planned

    def foresee_step(self, step: Step) -> Foresight:
        if inherited := self.inherit_end(step):
            return inherited
        action, origin = step.action, self.origin_of(step)
        if origin and origin.foresight and origin.foresight.state is None and self.is_written_first(action):
            # Its origin may create its target.
            return Foresight(None, f"It follows from the action that is to derive it. {origin.foresight.message}")
        match = self.excluded.get(action.uuid) or self.looked_up.get(rule_key(action))
        foresight = excluded_foresight(action, match) if match else DryRun(action, planned_actions_of(step)).foresee()
        self.record_result(step, foresight)
        return foresight

    def is_written_first(self, action: Action) -> bool:
        """Return whether the target of an action is written when the action that derives it is executed."""
        return has_base_type(plugins.load("ACTION_TYPES"), action, WRITTEN_FIRST)

    def is_on_new_resource(self, action: Action) -> bool:
        return self.model.stacks.find_new(str(action.target)) is not None

    def with_stored_target(self, action: Action) -> Action:
        """Return an action on the root stack instead of a resource in no table: both affect the same project only."""
        resource = self.model.stacks.find_new(str(action.target))
        if resource is None:
            return action
        root = resource.stack.root or resource.stack
        inputs = {**action.input_parameters, "resource_id": str(root.uuid)}
        return Action(uuid=action.uuid, action_type=action.action_type, input_parameters=inputs)

    def record_result(self, step: Step, foresight: Foresight) -> None:
        """Record the consequences of the end of an action for its dependents and planned actions."""
        if foresight.state is None:
            return  # Its end cannot be predicted, or follows from its derived actions.
        action = step.action
        ends_dependents = foresight.state in WITHOUT_SUCCESS and self.ends_dependents(action)
        if not (action.is_to_derive or ends_dependents):
            return
        end = Foresight(*end_with(action.uuid, foresight.state))
        if action.is_to_derive:
            step.end_of_planned = end
        if ends_dependents:
            step.end_of_dependents = InheritedEnd(next(self.positions), end)

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


def planned_actions_of(step: Step) -> Sequence[DerivedAction]:
    """Return the planned derived actions of an action, before it begins."""
    planned = [step.action for step in step.planned]
    return [*step.derived, *(Foresight(action.state).of(action) for action in planned)]


def execution_order(steps: Iterable[Step]) -> list[Step]:
    """Return the steps in the order in which one worker would execute their actions.

    Running actions come first, then the generations of the graph, each sorted by key. Actions in cycles are omitted.
    """
    children: dict[Step, list[Step]] = defaultdict(list)
    waiting = {step: len(step.parents) for step in steps}
    for child in waiting:
        for parent in child.parents:
            children[parent].append(child)
    order: list[Step] = []
    generation = [step for step, number in waiting.items() if not number]
    while generation:
        order += sorted(generation, key=lambda step: (step.action.state == State.PENDING, step.action.pk))
        released = []
        for parent in generation:
            for child in children[parent]:
                waiting[child] -= 1
                if not waiting[child]:
                    released.append(child)
        generation = released
    return order
