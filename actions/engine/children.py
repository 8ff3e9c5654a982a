"""Derived actions, which another action creates while it runs and waits for."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from actions.engine.phases import Result
from actions.engine.storage import PERSISTENTLY, StoredPhases
from actions.graph.proposals import ProposedAction, write_actions
from actions.messages import (
    DERIVED_CANCELLED,
    DERIVED_FAILED,
    GOES_ON,
    SOME_DERIVED_CANCELLED,
    SOME_DERIVED_FAILED,
    WAITS_FOR_ACTION,
    WAITS_FOR_ACTIONS,
)
from actions.models import Action, ActionEvent, ActionParent
from actions.types.base import Answer, DerivedAction, Outcome

State = Action.State
COLUMNS = ("uuid", "name", "action_type", "state", "status_message", "outputs", "target")
# The states of derived actions that decide the outcome of the action that derived them, by precedence.
DECISIVE = {State.FAILED: Answer.ERROR, State.CANCELLED: Answer.CANCEL}
# The messages for one derived action, and for one of several.
DECISIVE_MESSAGES = {
    State.FAILED: (DERIVED_FAILED, SOME_DERIVED_FAILED),
    State.CANCELLED: (DERIVED_CANCELLED, SOME_DERIVED_CANCELLED),
}


def find_derived(action: Action) -> list[DerivedAction]:
    """Return the actions that an action derived, in the order of their creation, with one query."""
    rows = action.derived.order_by("pk").values_list(*COLUMNS)
    return [DerivedAction(*row) for row in rows]


def outcome_with_derived(action: Action, outcome: Outcome) -> Outcome:
    """Return the outcome of an action that derived others: its answer, unless one of them failed or was cancelled."""

    def first(state: State) -> tuple[str, str | None]:
        derived = action.derived.filter(state=state).order_by("pk")[0]
        return derived.name, derived.status_message

    return decide(outcome, action.derived.count_states(), first)


def decide(outcome: Outcome, counts: Mapping[str, int], first: Callable[[State], tuple[str, str | None]]) -> Outcome:
    """Return the outcome of an action, given the states of its derived actions.

    Args:
        outcome: its own answer.
        counts: the number of derived actions by state.
        first: returns the name and the message of the first derived action in a state.
    """
    for state, answer in DECISIVE.items():
        if number := counts.get(state):
            reason = outcome.reason or describe_decisive(number, sum(counts.values()), state, *first(state))
            return Outcome(answer, reason)
    return outcome


def describe_decisive(number: int, total: int, state: State, name: str, message: str | None) -> str:
    """Return a message with the number of derived actions in a state, and the first one's name and reason."""
    alone, of_several = DECISIVE_MESSAGES[state]
    values = {"number": number, "total": total, "name": name, "reason": message}
    return (alone if total == 1 else of_several).fill(**values)


def waiting_for(number: int) -> str:
    if not number:
        return GOES_ON.text
    return WAITS_FOR_ACTION.text if number == 1 else WAITS_FOR_ACTIONS.fill(number=number)


def reverse_planned_links(action: Action) -> None:
    """Reverse the links between an action and its planned derived actions, so that it waits for them."""
    planned = ActionParent.objects.filter(parent=action, child__derived_from=action)
    planned.update(child=F("parent"), parent=F("child"))


def defer_derived(action: Action, delay: float) -> None:
    """Defer the planned derived actions by ``delay`` seconds. The caller holds the plan's row."""
    if delay:
        action.derived.pending().update(due_time=timezone.now() + timedelta(seconds=delay))


def extend_timeouts(action: Action, pause: float) -> None:
    """Extend the deadlines of the actions that wait for an action by its pause, in seconds.

    The caller holds the plan's row.
    """
    origin = action.derived_from_id
    while pause and origin:
        waiting = Action.objects.filter(pk=origin)
        waiting.update(waits_until=F("waits_until") + timedelta(seconds=pause))
        origin = waiting.values_list("derived_from", flat=True).first()


class Derivation(StoredPhases):
    """The part of an execution that writes the derived actions."""

    outcome: Outcome

    def derive(self, phase: ActionEvent) -> bool:
        """Write the derived actions, and release the action until they have ended.

        Raises:
            ConcurrentTransition: the action has a signal that this worker has not seen, or another worker owns it.
        """
        outcome, guards = self.outcome, {"control": self.action.control}
        self.finish(phase, Result.WAITING, outcome.reason)
        is_planned, number = self.action.is_to_derive, self.count_awaited()
        self.action.wait_for_derived(f"{waiting_for(number)} {outcome.reason}".strip(), outcome.pause)
        PERSISTENTLY(self.write_derived, phase, outcome.derived, is_planned, guards)
        self.log.info("action derived others", number=number)
        return True

    def count_awaited(self) -> int:
        """Return the number of actions to wait for: the new ones, and the planned ones that have not ended."""
        planned = self.action.derived.unfinished().count() if self.action.is_to_derive else 0
        return planned + len([child for child in self.outcome.derived if child.derived_from is None])

    @transaction.atomic
    def write_derived(
        self, phase: ActionEvent, derived: Sequence[ProposedAction], is_planned: bool, guards: Mapping[str, Any]
    ) -> None:
        # The rows are inserted before the plan is locked, so that the lock is held only briefly.
        write_actions(self.action.action_plan_id, derived, self.action)
        if is_planned:
            reverse_planned_links(self.action)
        self.write(phase, hold=True, guards=guards)
        # Signals and cancellations lock the plan before the rows of its actions as well.
        if is_planned:
            defer_derived(self.action, self.outcome.delay)
        extend_timeouts(self.action, self.outcome.pause)
