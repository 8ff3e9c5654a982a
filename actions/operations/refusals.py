"""Reasons for the console why an action cannot be skipped or restored."""

from datetime import datetime

from actions.models import Action
from watcher_site.state_machine import StatefulModel
from watcher_site.templatetags.console import ago


def obstacle(action: Action) -> str | None:
    """Return which action it is, what became of it, by whom and when; None, if it can be skipped.

    The action comes with its plan.
    """
    plan = action.action_plan
    if not plan.is_prunable:
        return f"Nothing of this action plan can be skipped any more: it is {plan.state}, {since(plan)}."
    if action.state == Action.State.PENDING:
        return None
    if action.state == Action.State.SKIPPED and action.skipped_by is not None:
        why = f", for this reason: {action.reason}" if action.reason else ", without a reason"
        return f"{action.called} was skipped by {action.skipped_by} {ago(changed(action))}{why}"
    message = f" {action.status_message}" if action.status_message else ""
    return f"{action.called} is {action.state} already, {since(action)}.{message}"


def restore_obstacle(action: Action) -> str | None:
    """Return why an action cannot be restored, as `obstacle` does."""
    plan = action.action_plan
    if not plan.is_prunable:
        return f"Nothing of this action plan can be restored any more: it is {plan.state}, {since(plan)}."
    if action.is_restorable:
        return None
    if action.derived_from and action.is_origin_skipped:
        return f"{action.called} is derived from {action.derived_from.called}, which is skipped: restore that one."
    if action.state == Action.State.SKIPPED:
        return f"{action.called} was skipped automatically, and stays so."
    return f"{action.called} is not skipped: it is {action.state}, {since(action)}."


def since(record: StatefulModel) -> str:
    return f"since its last change {ago(changed(record))}"


def changed(record: StatefulModel) -> datetime:
    return record.updated_at or record.created_at
