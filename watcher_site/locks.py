"""Locks on more than a row."""

from typing import Any

from django.contrib.contenttypes.models import ContentType


def lock_table(model: Any) -> None:
    """Let one process at a time do what concerns a whole table, until the transaction ends.

    It locks the row of the model's content type, which stands in every migrated database, and so keeps out only
    those who ask here too: whoever reads or writes single rows goes on.
    """
    ContentType.objects.select_for_update().get(pk=ContentType.objects.get_for_model(model).pk)
