"""What would become of an action if it were executed now, found out on a model of the cloud by its own code."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from actions.derivation import DECISIVE, describe_decisive, finder
from actions.models import Action
from actions.outcomes import judge, read
from actions.proposals import ProposedAction
from actions.signalled import GAVE_ITSELF_UP
from actions.types.base import (
    OWN_EXCEPTIONS,
    ActionContext,
    ActionSkipException,
    ActionType,
    Answer,
    CannotBeForeseen,
    Outcome,
    Recovery,
    explain,
    make,
    nothing_derived,
)
from cluster.drivers.base import Cloud, standing_in
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


def foresee(action: Action, model: Cloud) -> Foresight:
    """Do to a model of the cloud what an action that has not ended would do to the cloud, and tell how it would end.

    The action goes through its transitions in memory: it must not be saved.
    """
    try:
        with standing_in(model), acting_for(str(action.uuid), action.attempt):
            rehearsal = Rehearsal(action)
            rehearsal.run()
    except CannotBeForeseen as reason:
        return Foresight(None, str(reason))
    except Exception as problem:
        log.warning("foresight broke off", action=str(action.uuid), action_type=action.action_type, exc_info=problem)
        return Foresight(None, f"What it would do is not foreseen: that broke off with {type(problem).__name__}.")
    if rehearsal.derived is not None:
        return Foresight(None, None, rehearsal.derived)
    return Foresight(action.state, action.status_message)


def conclude(action: Action, ends: Sequence[tuple[str, Foresight]]) -> Foresight:
    """Return how an action would end, given the name and the end of each action that it derives.

    As `actions.derivation.verdict` has it.
    """
    for state in DECISIVE:
        bad = [(name, end.message) for name, end in ends if end.state == state]
        if bad:
            return end_badly(action, state, describe_decisive(len(bad), len(ends), state, *bad[0]))
    unknown = [(name, end.message) for name, end in ends if end.state is None]
    if unknown:
        name, why = unknown[0]
        return Foresight(None, f"{len(unknown)} of the actions that it derives cannot be foreseen: {name}: {why}")
    return Foresight(State.SUCCEEDED)


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

    def __init__(self, action: Action) -> None:
        self.action = action
        self.derived: Sequence[ProposedAction] | None = None

    def run(self) -> None:
        """Bring the action to its end. Raises: `CannotBeForeseen`."""
        try:
            self.go_through()
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

    def begin(self) -> Recovery:
        """Do what comes before the execution: look at the cloud, or find out how far a worker has come."""
        self.phase = "pre_condition" if self.action.state == State.PENDING else "recover"
        self.action_type = load(self.action)
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


def load(action: Action) -> ActionType:
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
        find_derived=finder(action) if action.has_planned else nothing_derived,
    )
    action_type = make(action.action_type, action.input_parameters, context)
    if "foresee" not in vars(type(action_type)) and not action_type.inherits_foresight:
        raise CannotBeForeseen(f"What actions of type {action.action_type} do is not foreseen.")
    return action_type
