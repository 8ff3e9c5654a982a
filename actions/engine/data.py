"""The stored results of an action: outputs for others, data for its own next run; and the person who requested it."""

import json
from typing import Any

import structlog

from actions.models import Action
from actions.types.base import ActionFailed, LeaseLost, explain
from watcher_site.database.text import require_storable
from watcher_site.refusals import Refused

log = structlog.get_logger(__name__)


def require_json(field: str, value: Any) -> None:
    """Refuse what no JSON column can hold.

    Raises:
        ActionFailed, Invalid: the field, and the rule that it breaks.
    """
    if not isinstance(value, dict):
        raise ActionFailed(f"{field}: must be an object.")
    require_storable(field, value)
    try:
        json.dumps(value)
    except (TypeError, ValueError) as problem:
        raise ActionFailed(f"{field}: must hold nothing but JSON.") from problem


def make_outputs_storable(action: Action) -> None:
    """Replace outputs that cannot be stored by an error: the work of the action is done regardless."""
    if not action.outputs:
        return
    try:
        require_json("outputs", action.outputs)
    except (ActionFailed, Refused) as problem:
        log.warning("outputs not kept", action=str(action.uuid), problem=str(problem))
        action.outputs.clear()
        action.outputs["error"] = explain(problem)


def save_data(action: Action, data: dict[str, Any]) -> None:
    """Store data at once, for the worker that continues the action.

    Raises:
        ActionFailed, Invalid: it cannot be stored.
        LeaseLost: another worker owns the action.
    """
    require_json("data", data)
    if not Action.objects.filter(pk=action.pk, **action.values_read).update(data=data):
        raise LeaseLost
