"""Calls of hooks of action types for rows of actions that are not being executed."""

from contextlib import suppress
from typing import Any

import structlog
from django.db import transaction

from actions.models import Action
from actions.types.base import ActionContext, ActionFailed, make
from watcher_site.processes.worker import LOST_DATABASE

log = structlog.get_logger(__name__)


def clean_up(action: Action) -> None:
    """Call the clean-up hook of the action's type for an action that ends, in the caller's transaction.

    Rows that types lock precede plans and actions in the lock order, so the caller writes the end of the action after
    this. An error of the hook is logged, and does not prevent the end of the action.
    """
    reason = str(action.outputs.get("error") or action.status_message)
    context = ActionContext(str(action.uuid), data=action.data, is_derived=action.derived_from_id is not None)
    try:
        with transaction.atomic():
            make(action.action_type, action.input_parameters, context).be_given_up(reason)
    except LOST_DATABASE:
        raise
    except Exception as problem:
        log.error("clean-up of action failed", action=str(action.uuid), exc_info=problem)


def clean_up_cancelled(actions: Any) -> None:
    """Clean up actions that were cancelled while they were deferred, when no worker could abort them.

    It takes one query if there are none. The hook may have been called for an action before.
    """
    cancelled = actions.present().filter(state=Action.State.CANCELLED, attempt__gt=0, start_time=None)
    for action in cancelled.order_by("pk"):
        clean_up(action)


def require_current_actions(actions: Any) -> None:
    """Check that the planned actions of a plan that is about to start match the current state.

    It takes one query, and those of the action types. The caller has locked the plan's row.

    Raises:
        Conflict: an action does not match; the message names the first difference.
    """
    for action in actions.pending().filter(derived_from=None, initial_data__isnull=False).order_by("pk"):
        # Invalid parameters cause a failure with a reason when the action is executed.
        with suppress(ActionFailed):
            context = ActionContext(str(action.uuid), data=action.data)
            make(action.action_type, action.input_parameters, context).require_current()
