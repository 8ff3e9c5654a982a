"""The console's explanations of why an action cannot be skipped or restored."""

from datetime import datetime

from actions.models import Action
from actions.models.refusals import Operation, Refusal, find_refusals
from watcher_site.state_machine import StatefulModel
from watcher_site.templatetags.console import ago

PARTICIPLES = {Operation.SKIP: "skipped", Operation.RESTORE: "restored"}


def explain_refusal(operation: Operation, action: Action) -> str | None:
    """Return why an action cannot be skipped or restored: its state, by whom and since when; None if it can be.

    The action comes with its plan.
    """
    refusals = list(find_refusals(operation, action))
    if not refusals:
        return None
    if Refusal.PLAN_STATE in refusals:
        plan, participle = action.action_plan, PARTICIPLES[operation]
        return f"Nothing of this action plan can be {participle} any more: it is {plan.state}, {since(plan)}."
    if Refusal.ORIGIN_SKIPPED in refusals and action.derived_from:
        return f"{action.called} is derived from {action.derived_from.called}, which is skipped: restore that one."
    if Refusal.SKIPPED_AUTOMATICALLY in refusals:
        return f"{action.called} was skipped automatically, and stays so."
    if operation == Operation.RESTORE:
        return f"{action.called} is not skipped: it is {action.state}, {since(action)}."
    if action.state == Action.State.SKIPPED and action.skipped_by is not None:
        why = f", for this reason: {action.reason}" if action.reason else ", without a reason"
        return f"{action.called} was skipped by {action.skipped_by} {ago(changed(action))}{why}"
    message = f" {action.status_message}" if action.status_message else ""
    return f"{action.called} is {action.state} already, {since(action)}.{message}"


def since(record: StatefulModel) -> str:
    return f"since its last change {ago(changed(record))}"


def changed(record: StatefulModel) -> datetime:
    return record.updated_at or record.created_at
