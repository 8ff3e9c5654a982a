"""An action that the engine gives up: its type says in the tables what became of what it was at work on."""

from typing import Any

import structlog
from django.db import transaction

from actions.models import Action
from actions.types.base import ActionContext, make
from watcher_site.processes.worker import LOST_DATABASE

log = structlog.get_logger(__name__)


def settle(action: Action) -> None:
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


def settle_cancelled(actions: Any) -> None:
    """Clean up actions that were cancelled while they were deferred, when no worker could abort them.

    It takes one query if there are none. An action that was cleaned up before stays as it is.
    """
    cancelled = actions.present().filter(state=Action.State.CANCELLED, attempt__gt=0, start_time=None)
    for action in cancelled.order_by("pk"):
        settle(action)
