"""Locks of rows and tables, held until the transaction ends."""

from typing import Any, TypeVar

from django.contrib.contenttypes.models import ContentType

from watcher_site.database.messages import RECORD_NOT_FOUND
from watcher_site.refusals import NotFound

Row = TypeVar("Row", bound=Any)


def lock_present(record: Row, missing: str = "") -> Row:
    """Return the current row of a record, locked until the transaction ends.

    Args:
        missing: the message of `NotFound`, instead of the default one.

    Raises:
        NotFound: the row was deleted in the meantime.
    """
    rows = type(record).objects.present().select_for_update(no_key=True)
    locked: Row | None = rows.filter(pk=record.pk).first()
    if locked is None:
        raise NotFound(missing or RECORD_NOT_FOUND.fill(kind=record._meta.object_name, uuid=record.uuid))
    return locked


def lock_table(model: Any) -> None:
    """Lock a table against other callers of this function until the transaction ends.

    It locks the row of the model's content type, which exists in every migrated database. Code that reads or writes
    rows of the table is not blocked.
    """
    ContentType.objects.select_for_update().get(pk=ContentType.objects.get_for_model(model).pk)
