"""The dry run of an action: its phases in memory, on a model of the cloud."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from actions.engine import messages
from actions.engine.children import DECISIVE, decide
from actions.engine.phases import ActionPhases, call_method
from actions.graph.proposals import ProposedAction
from actions.messages import NOT_FORESEEN
from actions.models import Action, ActionEvent
from actions.types.base import (
    DONE,
    OWN_EXCEPTIONS,
    CannotBeForeseen,
    DerivedAction,
    Outcome,
)
from cluster.drivers.ownership import acting_for

State = Action.State


@dataclass(frozen=True)
class Foresight:
    """The predicted final state of an action and its status message.

    If the state is None, it cannot be predicted, and the message is the reason.
    """

    state: str | None
    message: str | None = None
    derived: Sequence[ProposedAction] | None = None
    """The actions that it would derive, empty if they were planned. `DryRun.continue_after` continues after them."""
    dry_run: "DryRun | None" = field(default=None, compare=False, repr=False)

    def of(self, action: Action) -> DerivedAction:
        """Return an action with this state, for the action that derived it. The state is empty if it is unknown."""
        target = None if action.target is None else str(action.target)
        return DerivedAction(
            action.uuid, action.name, action.action_type, str(self.state or ""), self.message, {}, target
        )


@dataclass(slots=True)
class ForeseenPhase:
    """A phase of a dry run, which replaces `ActionEvent`: creating model instances would take most of the time."""

    event: str
    result: str = ""


class NoCheckpoint:
    """The checkpoint of a dry run, which is never stopped."""

    is_interruptible = False

    def check(self) -> None:
        """Return at once."""


class DryRun(ActionPhases):
    """The phases of an action that has not ended, on a model of the cloud.

    The transitions change the action in memory, so it must not be saved.

    It runs in `using_cloud`, which the caller enters once for all actions.

    Args:
        planned: the planned actions that it will derive, before it begins.
    """

    def __init__(self, action: Action, planned: Sequence[DerivedAction] = ()) -> None:
        super().__init__(action)
        self.known, self.checkpoint = planned, NoCheckpoint()
        self.derived: Sequence[ProposedAction] | None = None
        self.omits_post_condition = False

    def foresee(self) -> Foresight:
        """Return the predicted end of the action, or the actions that it would derive."""
        return self.guarded(self.begin_or_recover)

    def continue_after(self, ends: Sequence[DerivedAction]) -> Foresight:
        """Return the predicted end of the action after its derived actions, or the next ones that it would derive."""
        unknown = [end for end in ends if not end.state]
        if unknown and not any(end.state in DECISIVE for end in ends):
            name, why = unknown[0].name, unknown[0].status_message
            values = {"number": len(unknown), "name": name, "reason": why}
            return Foresight(None, messages.DERIVED_UNPREDICTABLE.fill(**values))
        self.known, self.derived = ends, None
        return self.guarded(self.continue_after_derived)

    def guarded(self, work: Callable[[], bool]) -> Foresight:
        action = self.action
        try:
            with acting_for(str(action.uuid), action.attempt):
                work()
        except CannotBeForeseen as reason:
            return Foresight(None, str(reason))
        except Exception as problem:
            self.log.warning("dry run failed", exc_info=problem)
            return Foresight(None, messages.DRY_RUN_FAILED.fill(error=type(problem).__name__))
        if self.derived is not None:
            return Foresight(None, None, self.derived, self)
        return Foresight(action.state, action.status_message)

    def begin_or_recover(self) -> bool:
        action = self.action
        if action.has_derived:
            raise CannotBeForeseen(messages.WAITS_UNPREDICTABLY.text)
        state = action.state
        if state == State.CANCELLING or action.control == Action.Signal.CANCEL:
            raise CannotBeForeseen(messages.BEING_ABORTED.text)
        if state == State.PENDING:
            return self.run()
        if state == State.SUSPENDED:
            action.resume()
        return self.recover_with(self.begin("recover"))

    # Replacements for the database and the applier.

    def begin(self, event: str) -> Any:
        return ForeseenPhase(event)

    def finish(self, phase: Any, result: str, details: str | None = None) -> None:
        phase.result = result

    def write(self, *phases: ActionEvent, **how: Any) -> bool:
        return True

    write_beginning = end = write

    def check_exclusions(self) -> None:
        """Do nothing, because the preflight matches the exclusions with all actions of a plan at once."""

    def services(self) -> Mapping[str, Any]:
        known = self.known  # Without a reference to this object, which could then only be freed as a cycle.
        return {"find_derived": lambda: known}

    def load(self) -> None:
        """Make the action type.

        Raises:
            CannotBeForeseen: the type does not define the effect of its actions on the model.
        """
        super().load()
        if "foresee" not in vars(type(self.action_type)) and not self.action_type.inherits_foresight:
            raise CannotBeForeseen(NOT_FORESEEN.fill(type=self.action.action_type))

    def call(self) -> Outcome:
        if not self.action.has_derived:
            return call_method(self.action_type, "foresee", self.action.is_to_derive)
        self.omits_post_condition = not self.action_type.foresees_go_on
        outcome = call_method(self.action_type, "go_on") if self.action_type.foresees_go_on else DONE
        return decide(outcome, Counter(child.state for child in self.known), self.find_first)

    def find_first(self, state: State) -> tuple[str, str | None]:
        return next((child.name, child.status_message) for child in self.known if child.state == state)

    def perform(self, phase: ActionEvent, work: Callable[[], None]) -> BaseException | None:
        """Call ``work`` as a phase, and return its error if that is a reason for users; other errors are raised.

        After a failure, post_condition is not called, because it may query the database.
        """
        if phase.event == "post_condition" and self.omits_post_condition:
            return None
        problem = super().perform(phase, work)
        if problem is not None and not isinstance(problem, OWN_EXCEPTIONS):
            raise problem
        self.omits_post_condition = self.omits_post_condition or problem is not None
        return problem

    def record_failure(self, phase: ActionEvent, problem: BaseException) -> None:
        """Do nothing, because the preflight reports the failure."""

    def defer(self, execute: ActionEvent) -> bool:
        raise CannotBeForeseen(messages.WOULD_BE_DEFERRED.fill(reason=self.outcome.reason))

    def derive(self, execute: ActionEvent) -> bool:
        if not self.action_type.inherits_foresight:
            if self.outcome.derived:
                raise CannotBeForeseen(messages.DERIVES_UNPREDICTABLY.text)
            raise CannotBeForeseen(messages.WOULD_WAIT_UNPREDICTABLY.text)
        self.derived = self.outcome.derived
        self.action.wait_for_derived(self.outcome.reason)
        return True
