"""Names of actions and of the objects that they act on, from their types and parameters."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from watcher_site import plugins

NAME_LENGTH = TARGET_LENGTH = 255


def resource(parameters: Mapping[str, Any]) -> str:
    """Return the name of what an action acts on, or what a nop says."""
    named = (parameters.get(name) for name in ("resource_name", "resource_id", "message"))
    return next((str(name) for name in named if name), "")


def generated_name(action_type: str, uuid: UUID) -> str:
    """Return the name of an action that was given none: its type, and the beginning of its UUID."""
    ending = f"_{str(uuid)[:8]}"
    return f"{action_type[: NAME_LENGTH - len(ending)]}{ending}"


def target(action_type: str, parameters: Mapping[str, Any]) -> str | None:
    """Return the target of an action that its type declares; the parameters have not been validated yet."""
    kind = plugins.load("ACTION_TYPES").get(action_type)
    found = kind.affected(parameters).target if kind else None
    return found if isinstance(found, str) and len(found) <= TARGET_LENGTH else None
