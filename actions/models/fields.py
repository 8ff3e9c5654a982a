"""Columns that a new row fills in by itself."""

from typing import Any

from django.db import models


class FilledCharField(models.CharField):
    """A text that, where a new row has none, the method of its model that ``filled_by`` names gives.

    At the INSERT, so that it does not matter by which way the row comes, one or many.
    """

    def __init__(self, filled_by: str = "", **options: Any) -> None:
        super().__init__(**options)
        self.filled_by = filled_by

    def deconstruct(self) -> Any:
        """Stand in migrations as what it is to the database."""
        name, _, positional, options = super().deconstruct()
        return name, "django.db.models.CharField", positional, options

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        value = getattr(model_instance, self.attname)
        if add and not value:
            value = getattr(model_instance, self.filled_by)()
            setattr(model_instance, self.attname, value)
        return value
