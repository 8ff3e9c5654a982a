"""System checks of action types with the interfaces of earlier versions, and of queues for action types."""

from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.utils.module_loading import import_string

from watcher_site import plugins

ZONE = "zone:"
REPLACED = ("target", "compute_nodes", "clusters", "operations")
"""The methods of action types that `ActionType.affected` replaces."""


@register()
def check_outcomes(**_: Any) -> list[CheckMessage]:
    return [
        Error(f"ACTION_TYPES: execute of {path} returns a bool, and must return an Outcome.", id="actions.E001")
        for path in settings.ACTION_TYPES
        if returns_bool(path)
    ]


@register()
def check_affected_resources(**_: Any) -> list[CheckMessage]:
    return [
        Error(f"ACTION_TYPES: {path} defines {name}, which nothing calls: affected replaces it.", id="actions.E003")
        for path in settings.ACTION_TYPES
        for name in REPLACED
        if defines(path, name)
    ]


@register()
def check_queues(**_: Any) -> list[CheckMessage]:
    with suppress(Exception):  # Another check reports types that cannot be loaded.
        subjects = {subject for subject in settings.CELERY_QUEUES if not subject.startswith(ZONE)}
        return [
            Error(f"WATCHER_CELERY_QUEUES: there is no action type {name}.", id="actions.E002")
            for name in sorted(subjects - set(plugins.load("ACTION_TYPES")))
        ]
    return []


def defines(path: str, name: str) -> bool:
    """Return whether an action type has a method with this name. Another check reports types that cannot be loaded."""
    with suppress(Exception):
        return callable(getattr(import_string(path), name, None))
    return False


def returns_bool(path: str) -> bool:
    """Return whether the execute method of an action type is annotated with bool.

    Another check reports types that cannot be loaded.
    """
    with suppress(Exception):
        annotations: dict[str, Any] = import_string(path).execute.__annotations__
        return annotations.get("return") in (bool, "bool")
    return False
