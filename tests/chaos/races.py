"""Races of two operations that exclude each other: one succeeds, and the stored records match."""

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
from tests.chaos.start_delays import AdaptiveStartDelay
from tests.races import Race
from watcher_site.models import Service

# The rows of this many rounds are created and read together.
BATCH = 500


@dataclass(frozen=True)
class Result:
    """The result of a round: whether each operation succeeded, and how often the action was executed."""

    first: bool
    second: bool
    executed: int


@dataclass(frozen=True)
class RecordedResult(Result):
    """The result of a round, with the stored states of the plan and the action and the recorded phases."""

    plan: str
    action: str
    phases: frozenset[str]


def first_won(result: Result) -> bool:
    return result.first


def never_executed(result: Result) -> bool:
    return not result.executed


class OperationRace(ABC):
    """Two operations that exclude each other. The one that loses raises a refusal or returns false."""

    plan_state = ActionPlan.State.PENDING
    action_state = Action.State.PENDING
    balanced: ClassVar[tuple[Callable[[Result], bool], ...]] = (first_won,)
    """Conditions that are true if the first operation was early enough. Each has a delay with which half of the rounds
    meet it, and the rounds use these delays in turn.
    """

    def __init__(self, applier: Service) -> None:
        self.applier = applier
        self.delays = cycle([(condition, AdaptiveStartDelay()) for condition in self.balanced])

    @abstractmethod
    def first(self, action: Action) -> Any: ...

    @abstractmethod
    def second(self, action: Action) -> Any: ...

    @abstractmethod
    def is_consistent(self, result: RecordedResult) -> bool:
        """Return whether the stored records match the results of the operations."""

    def run(self, rounds: int) -> Counter[RecordedResult]:
        """Return the number of rounds with each result.

        Raises:
            AssertionError: the stored records of a round do not match its result.
        """
        results: Counter[RecordedResult] = Counter()
        with Race() as race, counted_executions() as executed:
            for done in range(0, rounds, BATCH):
                actions = self.make_actions(min(BATCH, rounds - done))
                # Two instances of each action, one for each operation.
                pairs = zip(actions.all(), actions.all(), strict=True)
                results.update(
                    with_records(actions, [self.run_round(race, executed, *instances) for instances in pairs])
                )
        assert not [result for result in results if not self.is_consistent(result)]
        return results

    def run_round(self, race: Race, executed: Counter[str], action: Action, same_action: Action) -> Result:
        condition, delay = next(self.delays)
        first, second = race.run(*delay.apply(lambda: self.first(action), lambda: self.second(same_action)))
        result = Result(first, second, executed[str(action.uuid)])
        delay.adapt(condition(result))
        return result

    def make_actions(self, number: int) -> ActionQuerySet:
        """Make actions, each in a plan of its own."""
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
        """Execute the ready action of a plan as an applier does."""
        ready = plan.actions.ready().first()
        return bool(ready) and execution.execute(ready, PlanLease.of(plan, self.applier))


class SkipAndStart(OperationRace):
    """A user skips an action while an applier claims its plan and executes its ready actions."""

    def first(self, action: Action) -> None:
        skip_action(action.uuid, "alice")

    def second(self, action: Action) -> bool:
        plan = action.action_plan
        plan.begin(self.applier)
        plan.save_state()
        return self.execute(plan)

    def is_consistent(self, result: RecordedResult) -> bool:
        if result.first:
            return (result.second, result.action, result.executed) == (False, "SKIPPED", 0) and not result.phases
        return (result.second, result.action, result.executed) == (True, "SUCCEEDED", 1)


class CancelAndCompletion(OperationRace):
    """A user cancels a plan while its last action is executed and the plan is completed."""

    plan_state = ActionPlan.State.ONGOING
    balanced = (first_won, never_executed)

    def first(self, action: Action) -> None:
        action.action_plan.abandon("alice")

    def second(self, action: Action) -> bool:
        plan = action.action_plan
        self.execute(plan)
        complete_plan(plan, plan.actions.count_states())
        return True

    def is_consistent(self, result: RecordedResult) -> bool:
        """Return whether an executed action has SUCCEEDED, even in a plan that is being cancelled."""
        action = ("SUCCEEDED", 1) if result.executed else ("PENDING", 0)
        plan = "CANCELLING" if result.first else "SUCCEEDED"
        one_succeeded = result.first != result.second
        return one_succeeded and (result.action, result.executed, result.plan) == (*action, plan)


class SignalAndCompletion(OperationRace):
    """A user sends a signal to an action while a worker completes it. The rounds use each signal in turn."""

    plan_state = ActionPlan.State.ONGOING
    action_state = Action.State.ONGOING

    def make_actions(self, number: int) -> ActionQuerySet:
        """Make actions, and suspend the third of them that is resumed by its round."""
        actions = super().make_actions(number)
        keys = [action.pk for action in actions if self.signal(action) == Action.Signal.RESUME]
        Action.objects.filter(pk__in=keys).update(control=Action.Signal.SUSPEND)
        return actions

    def signal(self, action: Action) -> Action.Signal:
        return list(Action.Signal)[action.pk % len(Action.Signal)]

    def first(self, action: Action) -> None:
        signal_action(action.uuid, self.signal(action), "alice")

    def second(self, action: Action) -> bool:
        """Run `execution.execute` from the execute phase on, as the start of the action is not part of the race."""
        worker = execution.Execution(action, PlanLease.of(action.action_plan, self.applier), NO_SLOT)
        worker.load()
        return worker.guarded(lambda: worker.execute_and_end(worker.begin("execute")))

    def is_consistent(self, result: RecordedResult) -> bool:
        """Return whether the action ended, and the signal is recorded if and only if it was accepted."""
        was_signalled = any(phase.startswith("signal_") for phase in result.phases)
        succeeded = result.second and (result.action, result.executed) == ("SUCCEEDED", 1)
        return succeeded and "execute" in result.phases and was_signalled == result.first


RACES: tuple[type[OperationRace], ...] = (SkipAndStart, CancelAndCompletion, SignalAndCompletion)


def run_all(rounds: int) -> str:
    """Run rounds of each race, and return how often its first operation won."""
    applier = Service.register(Service.APPLIER, "here")
    lines = []
    for race in RACES:
        results = race(applier).run(rounds)
        lines.append(f"{race.__name__}: the first operation won {count(first_won, results)} of {rounds}")
    return "\n".join(lines)


def count(condition: Callable[[Result], bool], results: Counter[RecordedResult]) -> int:
    return sum(number for result, number in results.items() if condition(result))


@contextmanager
def counted_executions() -> Iterator[Counter[str]]:
    """Count how often each action is executed."""
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


def with_records(actions: ActionQuerySet, results: list[Result]) -> Iterator[RecordedResult]:
    for action, result in zip(actions.prefetch_related("events"), results, strict=True):
        phases = frozenset(event.event for event in action.events.all())
        yield RecordedResult(**asdict(result), plan=action.action_plan.state, action=action.state, phases=phases)
