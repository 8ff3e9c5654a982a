"""Actions that another one derives while it runs: how it makes them, and what becomes of it when they have ended."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from django.db import transaction

from actions.dependents import WORDS
from actions.models import Action, ActionEvent
from actions.phases import PERSISTENTLY, PhaseRecord, Result
from actions.proposals import ProposedAction, write_actions
from actions.types.base import Answer, DerivedAction, Outcome

State = Action.State
COLUMNS = ("uuid", "name", "action_type", "state", "status_message", "outputs", "target")
# What decides over the action that derived others, the first that any of them is.
DECISIVE = {State.FAILED: Answer.ERROR, State.CANCELLED: Answer.CANCEL}


def finder(action: Action) -> Callable[[], Sequence[DerivedAction]]:
    """Return what looks at the actions that an action derived, once that is asked for."""
    return partial(find_derived, action)


def find_derived(action: Action) -> list[DerivedAction]:
    found = action.derived.order_by("pk").values_list(*COLUMNS)
    return [DerivedAction(*row) for row in found]


def verdict(action: Action, outcome: Outcome) -> Outcome:
    """Return what came of an action that derived others: what it answers, unless one of them says more."""
    counts = action.derived.count_states()
    for state, answer in DECISIVE.items():
        if counts.get(state):
            return Outcome(answer, outcome.reason or name_decisive(action, state, counts))
    return outcome


def name_decisive(action: Action, state: State, counts: dict[str, int]) -> str:
    first = action.derived.filter(state=state).order_by("pk")[0]
    total = sum(counts.values())
    of = "the action" if total == 1 else f"{counts[state]} of the {total} actions"
    return f"{of} that it derived {WORDS[state]}: {first.name}: {first.status_message}"


class Derivation(PhaseRecord):
    """What a worker writes of an action that derives others."""

    outcome: Outcome

    def derive(self, phase: ActionEvent) -> bool:
        """Write the new actions, and let go of the one that waits for them, for whoever has room when they end.

        Raises:
            ConcurrentTransition: the action was given a signal that this worker has not seen, or is no longer ours.
        """
        outcome, guards = self.outcome, {"control": self.action.control}
        self.finish(phase, Result.WAITING, outcome.reason)
        number = len(outcome.derived)
        waits = f"Action waits for {'the action' if number == 1 else f'{number} actions'} that it derived."
        self.action.wait_for_derived(f"{waits} {outcome.reason}".strip())
        PERSISTENTLY(self.write_derived, phase, outcome.derived, guards)
        self.log.info("action derived others", number=number)
        return True

    @transaction.atomic
    def write_derived(self, phase: ActionEvent, derived: Sequence[ProposedAction], guards: Mapping[str, Any]) -> None:
        # The rows come before the lock of the plan, which is then held for a moment only.
        write_actions(self.action.action_plan_id, derived, self.action)
        self.write(phase, hold=True, guards=guards)
