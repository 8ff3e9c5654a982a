"""Two verbs that exclude each other, begun at the same moment, thousands of times: one wins, the record says so."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from actions import execution
from actions.models import Action
from actions.signalling import signal_action
from actions.skipping import skip_action
from actions.types.nop import Nop
from plans.leases import PlanLease
from plans.models import ActionPlan
from plans.settlement import settle
from tests.plans.test_races import Race
from watcher_site.models import Service

# Rows are made for so many rounds at once.
BATCH = 500


@dataclass(frozen=True)
class Outcome:
    """What is on record of one round, and which of both believes that it won."""

    first: bool
    second: bool
    plan: str
    action: str
    executed: int
    phases: frozenset[str]


class Contest(ABC):
    """One kind of race. ``first`` and ``second`` raise a refusal, or return false, where they lost."""

    plan_state = ActionPlan.State.PENDING
    action_state = Action.State.PENDING

    def __init__(self, applier: Service) -> None:
        self.applier = applier

    @abstractmethod
    def first(self, plan: ActionPlan) -> Any: ...

    @abstractmethod
    def second(self, plan: ActionPlan) -> Any: ...

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
            for plan in self.plans(rounds):
                mine, theirs = (ActionPlan.objects.get(pk=plan.pk) for _ in range(2))
                first, second = race.run(lambda mine=mine: self.first(mine), lambda theirs=theirs: self.second(theirs))
                outcome = record(plan, first, second, executed)
                assert self.is_sound(outcome), outcome
                outcomes[outcome] += 1
        return outcomes

    def plans(self, rounds: int) -> Iterator[ActionPlan]:
        begun: dict[str, Any] = (
            {} if self.action_state == Action.State.PENDING else {"attempt": 1, "owner": self.applier}
        )
        applier = self.applier if self.plan_state in ActionPlan.RUNNING else None
        for done in range(0, rounds, BATCH):
            number = min(BATCH, rounds - done)
            plans = [ActionPlan(state=self.plan_state, applier=applier) for _ in range(number)]
            ActionPlan.objects.bulk_create(plans)
            nop: dict[str, Any] = {"action_type": "nop", "input_parameters": {"message": ""}, **begun}
            Action.objects.bulk_create(Action(action_plan=plan, state=self.action_state, **nop) for plan in plans)
            yield from plans

    def execute(self, plan: ActionPlan) -> bool:
        """Do as an applier's worker does with what is ready."""
        ready = plan.actions.ready().first()
        return bool(ready) and execution.execute(ready, PlanLease.of(plan, self.applier))


class SkipAgainstStart(Contest):
    """A person skips an action while an applier claims its plan and executes what is there."""

    def first(self, plan: ActionPlan) -> None:
        skip_action(plan.actions.get().uuid, "alice")

    def second(self, plan: ActionPlan) -> bool:
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

    def first(self, plan: ActionPlan) -> None:
        plan.abandon("alice")

    def second(self, plan: ActionPlan) -> bool:
        self.execute(plan)
        settle(plan, plan.actions.count_states())
        return True

    def is_sound(self, outcome: Outcome) -> bool:
        """What was executed is on record as such, though the plan is being cancelled by then."""
        done = ("SUCCEEDED", 1) if outcome.executed else ("PENDING", 0)
        plan = "CANCELLING" if outcome.first else "SUCCEEDED"
        is_one = outcome.first != outcome.second
        return is_one and (outcome.action, outcome.executed, outcome.plan) == (*done, plan)


class SignalAgainstFinish(Contest):
    """A person signals an action that is just coming to its end."""

    plan_state = ActionPlan.State.ONGOING
    action_state = Action.State.ONGOING

    def first(self, plan: ActionPlan) -> None:
        signal_action(plan.actions.get().uuid, Action.Signal.CANCEL, "alice")

    def second(self, plan: ActionPlan) -> None:
        action = plan.actions.get()
        action.succeed()
        action.save_state()

    def is_sound(self, outcome: Outcome) -> bool:
        """It ends whatever is said. Whether something was said in time stands in the record, and only then."""
        return (
            outcome.second and outcome.action == "SUCCEEDED" and ("signal_cancel" in outcome.phases) == outcome.first
        )


CONTESTS: tuple[type[Contest], ...] = (SkipAgainstStart, CancelAgainstFinish, SignalAgainstFinish)


def run_all(rounds: int) -> str:
    """Run each contest so many times, and return who won how often."""
    applier = Service.register(Service.APPLIER, "here")
    lines = []
    for contest in CONTESTS:
        outcomes = contest(applier).run(rounds)
        won = sum(number for outcome, number in outcomes.items() if outcome.first)
        lines.append(f"{contest.__name__}: {won} of {rounds} won by the first")
    return "\n".join(lines)


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


def record(plan: ActionPlan, first: bool, second: bool, executed: Counter[str]) -> Outcome:
    action = plan.actions.select_related("action_plan").get()
    phases = frozenset(action.events.values_list("event", flat=True))
    state = action.action_plan.state
    return Outcome(first, second, state, action.state, executed[str(action.uuid)], phases)
