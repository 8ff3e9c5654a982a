"""Two verbs that exclude each other, begun at the same moment, thousands of times: one wins, the record says so."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import cycle
from typing import Any, ClassVar

from actions.engine import execution
from actions.engine.leases import NO_SLOT
from actions.models import Action
from actions.models.querysets import ActionQuerySet
from actions.operations.signals import signal_action
from actions.operations.skipping import skip_action
from actions.types.nop import Nop
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from plans.planning.completion import complete_plan
from tests.chaos.handicap import Handicap
from tests.plans.test_races import Race
from watcher_site.models import Service

# Rows are made for so many rounds at once, and looked at together in the end.
BATCH = 500


@dataclass(frozen=True)
class Ending:
    """Which of both believes that it won a round, and how often the action was really executed."""

    first: bool
    second: bool
    executed: int


@dataclass(frozen=True)
class Outcome(Ending):
    """The recorded result of a round."""

    plan: str
    action: str
    phases: frozenset[str]


def first_won(ending: Ending) -> bool:
    return ending.first


def never_executed(ending: Ending) -> bool:
    return not ending.executed


class Contest(ABC):
    """One kind of race. ``first`` and ``second`` raise a refusal, or return false, where they lost."""

    plan_state = ActionPlan.State.PENDING
    action_state = Action.State.PENDING
    decisions: ClassVar[tuple[Callable[[Ending], bool], ...]] = (first_won,)
    """What is true where the first was in time for it. The rounds are steered to where that hangs in the balance."""

    def __init__(self, applier: Service) -> None:
        self.applier = applier
        self.steering = cycle([(decision, Handicap()) for decision in self.decisions])

    @abstractmethod
    def first(self, action: Action) -> Any: ...

    @abstractmethod
    def second(self, action: Action) -> Any: ...

    @abstractmethod
    def is_sound(self, outcome: Outcome) -> bool:
        """Whether the record of a round agrees with what happened."""

    def run(self, rounds: int) -> Counter[Outcome]:
        """Return how often each outcome came about.

        Raises:
            AssertionError: the record of a round does not agree with what happened.
        """
        outcomes: Counter[Outcome] = Counter()
        with Race() as race, counted() as executed:
            for done in range(0, rounds, BATCH):
                actions = self.make_actions(min(BATCH, rounds - done))
                both = zip(actions.all(), actions.all(), strict=True)
                endings = [self.run_round(race, executed, mine, theirs) for mine, theirs in both]
                outcomes.update(on_record(actions, endings))
        assert not [outcome for outcome in outcomes if not self.is_sound(outcome)]
        return outcomes

    def run_round(self, race: Race, executed: Counter[str], mine: Action, theirs: Action) -> Ending:
        decision, handicap = next(self.steering)
        first, second = race.run(*handicap.apply(lambda: self.first(mine), lambda: self.second(theirs)))
        ending = Ending(first, second, executed[str(mine.uuid)])
        handicap.note(decision(ending))
        return ending

    def make_actions(self, number: int) -> ActionQuerySet:
        """Make so many actions, each the only one of its plan."""
        begun: dict[str, Any] = (
            {} if self.action_state == Action.State.PENDING else {"attempt": 1, "owner": self.applier}
        )
        applier = self.applier if self.plan_state in ActionPlan.RUNNING else None
        plans = ActionPlan.objects.bulk_create(
            ActionPlan(state=self.plan_state, applier=applier) for _ in range(number)
        )
        nop: dict[str, Any] = {"action_type": "nop", "input_parameters": {"message": ""}, **begun}
        Action.objects.bulk_create(Action(action_plan=plan, state=self.action_state, **nop) for plan in plans)
        return Action.objects.filter(action_plan__in=plans).select_related("action_plan").order_by("pk")

    def execute(self, plan: ActionPlan) -> bool:
        """Do as an applier's worker does with what is ready."""
        ready = plan.actions.ready().first()
        return bool(ready) and execution.execute(ready, PlanLease.of(plan, self.applier))


class SkipAgainstStart(Contest):
    """A person skips an action while an applier claims its plan and executes what is there."""

    def first(self, action: Action) -> None:
        skip_action(action.uuid, "alice")

    def second(self, action: Action) -> bool:
        plan = action.action_plan
        plan.begin(self.applier)
        plan.save_state()
        return self.execute(plan)

    def is_sound(self, outcome: Outcome) -> bool:
        if outcome.first:
            return (outcome.second, outcome.action, outcome.executed) == (False, "SKIPPED", 0) and not outcome.phases
        return (outcome.second, outcome.action, outcome.executed) == (True, "SUCCEEDED", 1)


class CancelAgainstFinish(Contest):
    """A person cancels a plan while its last action is executed and the plan is settled."""

    plan_state = ActionPlan.State.ONGOING
    decisions = (first_won, never_executed)

    def first(self, action: Action) -> None:
        action.action_plan.abandon("alice")

    def second(self, action: Action) -> bool:
        plan = action.action_plan
        self.execute(plan)
        complete_plan(plan, plan.actions.count_states())
        return True

    def is_sound(self, outcome: Outcome) -> bool:
        """Return whether an action that was executed is recorded as such, though its plan is being cancelled."""
        done = ("SUCCEEDED", 1) if outcome.executed else ("PENDING", 0)
        plan = "CANCELLING" if outcome.first else "SUCCEEDED"
        is_one = outcome.first != outcome.second
        return is_one and (outcome.action, outcome.executed, outcome.plan) == (*done, plan)


class SignalAgainstFinish(Contest):
    """A person signals an action that a worker is just bringing to its end: one signal after the other."""

    plan_state = ActionPlan.State.ONGOING
    action_state = Action.State.ONGOING

    def make_actions(self, number: int) -> ActionQuerySet:
        """Suspend a third of them in advance, so that they can be resumed."""
        actions = super().make_actions(number)
        keys = [action.pk for action in actions if self.signal(action) == Action.Signal.RESUME]
        Action.objects.filter(pk__in=keys).update(control=Action.Signal.SUSPEND)
        return actions

    def signal(self, action: Action) -> Action.Signal:
        return list(Action.Signal)[action.pk % len(Action.Signal)]

    def first(self, action: Action) -> None:
        signal_action(action.uuid, self.signal(action), "alice")

    def second(self, action: Action) -> bool:
        """Do what a worker does of `execution.execute` once the action has begun, which is no part of the race."""
        worker = execution.Execution(action, PlanLease.of(action.action_plan, self.applier), NO_SLOT)
        worker.load()
        return worker.guarded(lambda: worker.execute_and_end(worker.begin("execute")))

    def is_sound(self, outcome: Outcome) -> bool:
        """It ends whatever is said. Whether something was said in time stands in the record, and only then."""
        was_signalled = any(phase.startswith("signal_") for phase in outcome.phases)
        is_done = outcome.second and (outcome.action, outcome.executed) == ("SUCCEEDED", 1)
        return is_done and "execute" in outcome.phases and was_signalled == outcome.first


CONTESTS: tuple[type[Contest], ...] = (SkipAgainstStart, CancelAgainstFinish, SignalAgainstFinish)


def run_all(rounds: int) -> str:
    """Run each contest so many times, and return who won how often."""
    applier = Service.register(Service.APPLIER, "here")
    lines = []
    for contest in CONTESTS:
        outcomes = contest(applier).run(rounds)
        lines.append(f"{contest.__name__}: {how_often(first_won, outcomes)} of {rounds} won by the first")
    return "\n".join(lines)


def how_often(decision: Callable[[Ending], bool], outcomes: Counter[Outcome]) -> int:
    return sum(number for outcome, number in outcomes.items() if decision(outcome))


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count how often each action is really executed."""
    executed: Counter[str] = Counter()
    original = Nop.execute

    def execute(nop: Nop) -> Any:
        executed[nop.context.action_uuid] += 1
        return original(nop)

    Nop.execute = execute  # type: ignore[method-assign]
    try:
        yield executed
    finally:
        Nop.execute = original  # type: ignore[method-assign]


def on_record(actions: ActionQuerySet, endings: list[Ending]) -> Iterator[Outcome]:
    for action, ending in zip(actions.prefetch_related("events"), endings, strict=True):
        phases = frozenset(event.event for event in action.events.all())
        yield Outcome(**asdict(ending), plan=action.action_plan.state, action=action.state, phases=phases)
