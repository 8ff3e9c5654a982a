"""The hooks of action types that are called for rows of actions, without an execution."""

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

    Rows that types lock come before those of plans and actions, so the caller writes the end of the action after this.
    An error of the hook is logged, and does not keep the action from ending.
    """
    reason = str(action.outputs.get("error") or action.status_message)
    context = ActionContext(str(action.uuid), data=action.data, is_derived=action.derived_from_id is not None)
    try:
        with transaction.atomic():
            make(action.action_type, action.input_parameters, context).be_given_up(reason)
    except LOST_DATABASE:
        raise
    except Exception as problem:
        log.error("abandoned action not settled", action=str(action.uuid), exc_info=problem)


def clean_up_cancelled(actions: Any) -> None:
    """Clean up actions that were cancelled while they were deferred, when no worker could abort them.

    It takes one query if there are none. An action that was cleaned up before stays as it is.
    """
    cancelled = actions.present().filter(state=Action.State.CANCELLED, attempt__gt=0, start_time=None)
    for action in cancelled.order_by("pk"):
        clean_up(action)


def require_current_actions(actions: Any) -> None:
    """Check that the actions of a plan that is about to start, as they were planned, fit the current state.

    It takes one query, and the queries of those types that derive actions. The caller holds the plan's row.

    Raises:
        Conflict: one action does not fit; the message names the first difference.
    """
    for action in actions.pending().filter(derived_from=None, initial_data__isnull=False).order_by("pk"):
        # One that cannot be made fails when it is executed, and says why.
        with suppress(ActionFailed):
            context = ActionContext(str(action.uuid), data=action.data)
            make(action.action_type, action.input_parameters, context).require_current()
