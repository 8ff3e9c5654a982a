"""A plan that a person looked at is started: what was planned in it must fit what stands now."""

from contextlib import suppress
from typing import Any

from actions.types.base import ActionContext, ActionFailed, make


def require_current(actions: Any) -> None:
    """Look whether the actions of a plan that is about to start, and that were planned beforehand, still fit.

    One query, and what the types of those ask that derive others. The caller holds the plan's row.

    Raises:
        Conflict: one does not, and what came first.
    """
    for action in actions.pending().filter(derived_from=None, initial_data__isnull=False).order_by("pk"):
        # One that cannot be made fails when it is executed, and says why.
        with suppress(ActionFailed):
            context = ActionContext(str(action.uuid), data=action.data)
            make(action.action_type, action.input_parameters, context).require_current()
