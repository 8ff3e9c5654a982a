"""The base class of stored objects, with a UUID, times of creation and change, and soft deletion."""

from collections.abc import Iterable
from datetime import datetime
from re import fullmatch
from typing import Any, Self
from uuid import UUID, uuid4

from django.db import models
from django.db.models import F
from django.db.models.expressions import OrderBy
from django.db.models.functions import Collate
from django.db.models.indexes import IndexExpression
from django.utils import timezone
from django.utils.deconstruct import deconstructible


def parse_uuid(text: str) -> UUID | None:
    """Return the UUID in a text, or None if the text is not one."""
    try:
        return UUID(text)
    except ValueError:
        return None


def uuid_range(text: str) -> tuple[UUID, UUID] | None:
    """Return the first and the last UUID with this prefix, with or without hyphens, or None for other texts.

    An index of a UUID column serves conditions with this range, on each database.
    """
    digits = text.replace("-", "")
    if not fullmatch("[0-9a-fA-F]{1,32}", digits):
        return None
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


@deconstructible
class NullsFirst(OrderBy):
    """Ascending order with nulls first, for indexes. SQLite sorts this way, and does not accept NULLS FIRST."""

    def __init__(self, field: str) -> None:
        super().__init__(F(field), nulls_first=True)

    def as_sqlite(self, compiler: Any, connection: Any) -> Any:
        return OrderBy(self.expression).as_sql(compiler, connection)


IndexExpression.register_wrappers(OrderBy, NullsFirst, Collate)


class RecordQuerySet(models.QuerySet[Any]):
    """The queries of all records."""

    model: Any

    def present(self) -> Self:
        """Exclude deleted rows."""
        return self.filter(deleted_at__isnull=True)

    def beginning_with(self, text: str) -> Self:
        """Select the rows whose UUID has this prefix, with or without hyphens."""
        bounds = uuid_range(text)
        return self.filter(uuid__range=bounds) if bounds else self.none()

    def soft_delete(self) -> int:
        """Mark these rows as deleted, and return the number of rows that were not deleted before."""
        now = timezone.now()
        return self.present().update(deleted_at=now, updated_at=now)


class Record(models.Model):
    """A row with a public UUID and the times of its creation, change and deletion.

    ``updated_at`` is null until the first change, as API clients expect.
    """

    uuid = models.UUIDField(default=uuid4, unique=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(null=True, editable=False)
    deleted_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        abstract = True

    def save_changes(self, fields: Iterable[str]) -> datetime:
        """Write only these columns and the time of the change."""
        self.updated_at = timezone.now()
        self.save(update_fields=[*fields, "updated_at"])
        return self.updated_at
