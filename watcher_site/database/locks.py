"""Locks on more than a row."""

from typing import Any

from django.contrib.contenttypes.models import ContentType


def lock_table(model: Any) -> None:
    """Lock a whole table against other callers of this function until the transaction ends.

    It locks the row of the model's content type, which exists in every migrated database: code that reads or writes
    single rows is not blocked.
    """
    ContentType.objects.select_for_update().get(pk=ContentType.objects.get_for_model(model).pk)
