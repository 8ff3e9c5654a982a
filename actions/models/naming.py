"""Names of actions and their objects, derived from types and parameters, and the columns that store them."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import models

from watcher_site import plugins

NAME_LENGTH = TARGET_LENGTH = 255
# The parameters with the name of an action's object, the best name first.
NAME_PARAMETERS = ("resource_name", "resource_id", "message")


def resource(parameters: Mapping[str, Any]) -> str:
    """Return the name of an action's object, or the message of a nop."""
    names = (parameters.get(name) for name in NAME_PARAMETERS)
    return next((str(name) for name in names if name), "")


def type_and_resource(action_type: str, parameters: Mapping[str, Any]) -> str:
    """Return the name of an action for users: its type and the name of its object."""
    return f"{action_type} {resource(parameters)}".strip()


def generated_name(action_type: str, uuid: UUID) -> str:
    """Return the default name of an action: its type, and the beginning of its UUID."""
    ending = f"_{str(uuid)[:8]}"
    return f"{action_type[: NAME_LENGTH - len(ending)]}{ending}"


def target(action_type: str, parameters: Mapping[str, Any]) -> str | None:
    """Return the target of an action that its type declares. The parameters have not been validated yet."""
    kind = plugins.load("ACTION_TYPES").get(action_type)
    identifier = kind.affected(parameters).target if kind else None
    return identifier if isinstance(identifier, str) and len(identifier) <= TARGET_LENGTH else None


class FilledCharField(models.CharField):
    """A text column that the method ``filled_by`` of the model fills if a new row has no text.

    It is filled at the INSERT, so that rows that are created in bulk get their texts, too.
    """

    def __init__(self, filled_by: str = "", **options: Any) -> None:
        super().__init__(**options)
        self.filled_by = filled_by

    def deconstruct(self) -> Any:
        """Return the field as a plain CharField, so that migrations do not depend on this class."""
        name, _, positional, options = super().deconstruct()
        return name, "django.db.models.CharField", positional, options

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        value = getattr(model_instance, self.attname)
        if add and not value:
            value = getattr(model_instance, self.filled_by)()
            setattr(model_instance, self.attname, value)
        return value
