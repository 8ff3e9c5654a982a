"""The outcome of an action type's execute, or of its continuation after the derived actions have ended."""

from django.conf import settings

from actions.graph.proposals import ProposedAction, check_graph
from actions.models import Action
from actions.types.base import ActionFailed, ActionType, Answer, Outcome, explain
from cluster.drivers.base import CloudBusy

TOO_LONG = "It took longer than {} seconds"
# What is said of an execute that failed and gave no reason.
REASONS = {
    Answer.ERROR: "The action {} execution failed.",
    Answer.TIMEOUT: "The action {} execution took too long.",
}


def judge(action: Action, outcome: Outcome) -> Outcome:
    """Return an answer that is no failure. Raises: `ActionFailed`."""
    answer, reason = outcome.answer, outcome.reason
    counts = answer is Answer.RETRY and not action.may_wait_for(outcome.until, outcome.lock_holder)
    if counts and action.retries >= settings.ACTION_RETRIES:
        raise ActionFailed(f"Exceeded maximum number of retries ({settings.ACTION_RETRIES}): {reason}")
    if answer in REASONS:
        raise ActionFailed(reason or REASONS[answer].format(action.uuid))
    return outcome


def read(action_type: ActionType, asked: str, has_planned: bool = False) -> Outcome:
    """Call a method of an action type, and return its answer.

    Args:
        asked: the name of the method.
        has_planned: whether there are planned actions that it may wait for.

    Raises:
        ActionFailed: the answer is invalid.
        Invalid: the derived actions are no valid graph.
    """
    try:
        outcome = getattr(action_type, asked)()
    except CloudBusy as busy:
        return Outcome(Answer.RETRY, explain(busy), until=busy.until)
    if flaw := find_flaw(outcome, has_planned):
        raise ActionFailed(f"{asked} of actions of type {action_type.name} {flaw}")
    check_graph(outcome.derived)
    return outcome


def find_flaw(outcome: object, has_planned: bool = False) -> str | None:
    """Return what is wrong with an answer, if anything is."""
    if not isinstance(outcome, Outcome):
        return f"does not return an Outcome, but {outcome!r:.40}"
    if not isinstance(outcome.derived, list | tuple):
        return f"derives no list of actions, but {outcome.derived!r:.40}"
    if outcome.answer is Answer.WAIT and not outcome.derived and not has_planned:
        return "waits, and derives no action to wait for"
    if outcome.answer is not Answer.WAIT and outcome.derived:
        return f"derives actions, and answers {outcome.answer.name} in the place of WAIT"
    strays = [one for one in outcome.derived if not isinstance(one, ProposedAction)]
    return f"derives what is no ProposedAction, but {strays[0]!r:.40}" if strays else None
