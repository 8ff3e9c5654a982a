"""What came of an action type's execute."""

from django.conf import settings

from actions.models import Action
from actions.types.base import ActionFailed, ActionType, Answer, Outcome, explain
from cluster.drivers.base import CloudBusy

TOO_LONG = "It took longer than {} seconds"
# What is said of an execute that failed and gave no reason.
REASONS = {
    Answer.ERROR: "The action {} execution failed.",
    Answer.TIMEOUT: "The action {} execution took too long.",
}


def ask(action_type: ActionType, action: Action) -> Outcome:
    """Execute, and return one of the answers that are no failure.

    Raises:
        ActionFailed: it failed, it has been put off too often, or its answer is none.
    """
    outcome = read(action_type)
    answer, reason = outcome.answer, outcome.reason
    if answer is Answer.RETRY and action.retries >= settings.ACTION_RETRIES:
        raise ActionFailed(f"Exceeded maximum number of retries ({settings.ACTION_RETRIES}): {reason}")
    if answer in REASONS:
        raise ActionFailed(reason or REASONS[answer].format(action.uuid))
    return outcome


def read(action_type: ActionType) -> Outcome:
    try:
        outcome = action_type.execute()
    except CloudBusy as busy:
        return Outcome(Answer.RETRY, explain(busy))
    if not isinstance(outcome, Outcome):
        name = action_type.name
        raise ActionFailed(f"execute of actions of type {name} does not return an Outcome, but {outcome!r:.40}")
    return outcome
