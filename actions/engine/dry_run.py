"""The dry run of an action: its own code runs on a model of the cloud."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog

from actions.engine.children import DECISIVE, describe_decisive
from actions.engine.outcomes import judge, read
from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.models.actions import GAVE_ITSELF_UP
from actions.types.base import (
    OWN_EXCEPTIONS,
    ActionContext,
    ActionSkipException,
    ActionType,
    Answer,
    CannotBeForeseen,
    DerivedAction,
    Outcome,
    Recovery,
    explain,
    make,
)
from cluster.drivers.base import Cloud, using_cloud
from cluster.drivers.ownership import acting_for

log = structlog.get_logger(__name__)
State = Action.State


@dataclass(frozen=True)
class Foresight:
    """The final state that an action would come to, with the message that it would have.

    Without a state it cannot be foreseen, and the message says why.
    """

    state: str | None
    message: str | None = None
    derived: Sequence[ProposedAction] | None = None
    """The actions that it would derive; empty if they were planned. `conclude` computes its state from theirs."""
    rehearsal: "Rehearsal | None" = field(default=None, compare=False, repr=False)
    """The execution in memory, which continues after the derived actions have ended."""

    def of(self, action: Action) -> DerivedAction:
        """Return an action with this end, as the action that derived it sees it; an unknown state is empty."""
        target = None if action.target is None else str(action.target)
        return DerivedAction(
            action.uuid, action.name, action.action_type, str(self.state or ""), self.message, {}, target
        )


def foresee(action: Action, model: Cloud, planned: Sequence[DerivedAction] = ()) -> Foresight:
    """Do to a model of the cloud what an action that has not ended would do to the cloud, and tell how it would end.

    The action goes through its transitions in memory: it must not be saved.

    Args:
        planned: the actions that were planned for it to derive, as they are before it begins.
    """
    return Rehearsal(action, model, planned).begin_run()


def conclude(action: Action, ends: Sequence[DerivedAction], rehearsal: "Rehearsal | None" = None) -> Foresight:
    """Return how an action would end, or which actions it would derive next, given the ends of its derived actions.

    As `actions.engine.children.verdict` has it.
    """
    decisive = find_decisive(ends)
    unknown = [one for one in ends if not one.state]
    if unknown and not decisive:
        name, why = unknown[0].name, unknown[0].status_message
        return Foresight(None, f"{len(unknown)} of the actions that it derives cannot be foreseen: {name}: {why}")
    if rehearsal and rehearsal.action_type.foresees_go_on:
        return rehearsal.go_on(ends)
    return end_badly(action, *decisive) if decisive else Foresight(State.SUCCEEDED)


def find_decisive(ends: Sequence[DerivedAction]) -> tuple[State, str] | None:
    """Return the state of derived actions that decides over the one that derived them, and why, if any does."""
    for state in DECISIVE:
        bad = [one for one in ends if one.state == state]
        if bad:
            return state, describe_decisive(len(bad), len(ends), state, bad[0].name, bad[0].status_message)
    return None


def end_badly(action: Action, state: State, reason: str) -> Foresight:
    if state == State.FAILED:
        action.fail("go_on", reason)
    else:
        action.request_abort()
        action.finish_abort(f"{GAVE_ITSELF_UP} {reason}")
    return Foresight(action.state, action.status_message)


class Rehearsal:
    """The phases of one action, as `Execution` has them; in ``phase`` the one that it is in."""

    action_type: ActionType
    phase: str

    def __init__(self, action: Action, model: Cloud, planned: Sequence[DerivedAction] = ()) -> None:
        self.action, self.model = action, model
        self.known: Sequence[DerivedAction] = planned
        self.derived: Sequence[ProposedAction] | None = None

    def begin_run(self) -> Foresight:
        return self.run(self.go_through)

    def go_on(self, ends: Sequence[DerivedAction]) -> Foresight:
        """Go on after what was derived has ended."""
        self.known, self.derived, self.phase = ends, None, "go_on"
        return self.run(self.go_further)

    def run(self, part: Callable[[], None]) -> Foresight:
        """Bring the action to its end, or to where it waits for what it derives."""
        action = self.action
        try:
            with using_cloud(self.model), acting_for(str(action.uuid), action.attempt):
                self.settle(part)
        except CannotBeForeseen as reason:
            return Foresight(None, str(reason))
        except Exception as problem:
            log.warning(
                "foresight broke off", action=str(action.uuid), action_type=action.action_type, exc_info=problem
            )
            return Foresight(None, f"What it would do is not foreseen: that broke off with {type(problem).__name__}.")
        if self.derived is not None:
            return Foresight(None, None, self.derived, self)
        return Foresight(action.state, action.status_message)

    def settle(self, part: Callable[[], None]) -> None:
        """Raises: `CannotBeForeseen`."""
        try:
            part()
        except OWN_EXCEPTIONS as problem:
            if isinstance(problem, ActionSkipException) and self.phase == "pre_condition":
                self.action.skip_automatically(explain(problem))
            else:
                self.action.fail(self.phase, explain(problem))

    def go_through(self) -> None:
        if self.action.has_derived:
            raise CannotBeForeseen("It waits for actions that it derived, and what it does then is not foreseen.")
        if self.action.state == State.CANCELLING or self.action.control == Action.Signal.CANCEL:
            raise CannotBeForeseen("It is being aborted.")
        if self.begin() is Recovery.DONE:
            return self.action.succeed()
        self.phase = "execute"
        return self.end(judge(self.action, read(self.action_type, "foresee", self.action.is_to_derive)))

    def go_further(self) -> None:
        outcome = read(self.action_type, "go_on")
        if decisive := find_decisive(self.known):
            state, reason = decisive
            outcome = Outcome(DECISIVE[state], outcome.reason or reason)
        self.end(judge(self.action, outcome))

    def begin(self) -> Recovery:
        """Do what comes before the execution: look at the cloud, or find out how far a worker has come."""
        self.phase = "pre_condition" if self.action.state == State.PENDING else "recover"
        self.action_type = load(self.action, lambda: self.known)
        if self.phase == "recover":
            if self.action.state == State.SUSPENDED:
                self.action.resume()
            return self.action_type.recover()
        self.action_type.pre_condition()
        self.action.begin()
        return Recovery.AGAIN

    def end(self, outcome: Outcome) -> None:
        if outcome.answer is Answer.RETRY:
            raise CannotBeForeseen(f"It would be tried again later: {outcome.reason}")
        if outcome.answer is Answer.WAIT and not self.action_type.inherits_foresight:
            does = (
                "derives actions, and what these do"
                if outcome.derived
                else "waits for actions that it derives, and what it does then"
            )
            raise CannotBeForeseen(f"It {does} is not foreseen.")
        if outcome.answer is Answer.WAIT:
            self.derived = outcome.derived
            return None
        if outcome.answer is Answer.CANCEL:
            self.action.request_abort()
            return self.action.finish_abort(f"{GAVE_ITSELF_UP} {outcome.reason}".strip())
        self.phase = "post_condition"
        self.action_type.post_condition()
        return self.action.succeed()


def load(action: Action, find_derived: Callable[[], Sequence[DerivedAction]]) -> ActionType:
    """Return the type's instance for an action, if the type foresees what its actions do.

    Raises:
        ActionFailed: as `make`.
        CannotBeForeseen: it does not define so itself.
    """
    is_derived = action.derived_from_id is not None
    context = ActionContext(
        str(action.uuid),
        data=dict(action.data),
        is_derived=is_derived,
        timeout=action.timeout,
        find_derived=find_derived,
    )
    action_type = make(action.action_type, action.input_parameters, context)
    if "foresee" not in vars(type(action_type)) and not action_type.inherits_foresight:
        raise CannotBeForeseen(f"What actions of type {action.action_type} do is not foreseen.")
    return action_type
