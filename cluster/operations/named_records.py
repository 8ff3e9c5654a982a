"""Lock and save records with unique names."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from django.db import IntegrityError, transaction

from watcher_site import history
from watcher_site.database.uniqueness import is_taken
from watcher_site.refusals import Conflict, NotFound

# A policy, a profile, an exclusion.
Named = TypeVar("Named", bound=Any)


def lock(record: Named) -> Named:
    """Return a record as it is in the table now, locked until the transaction ends.

    Raises:
        NotFound: it was deleted meanwhile.
    """
    standing = type(record).objects.present().select_for_update(no_key=True)
    locked: Named | None = standing.filter(pk=record.pk).first()
    if locked is None:
        raise NotFound(f"{record._meta.object_name} {record.uuid} could not be found")
    return locked


def save(record: Named, fields: Sequence[str] | None = None, details: Mapping[str, Any] | None = None) -> None:
    """Save it as a new row, or just some fields of it. The database decides whose a name is.

    Args:
        details: what history tells of it.

    Raises:
        Conflict: another of its kind has the name.
    """
    try:
        with transaction.atomic():
            record.save() if fields is None else record.save_changes(fields)
            verb = "create" if fields is None else "update"
            history.record(f"{record._meta.model_name}.{verb}", record, details=details)
    except IntegrityError as error:
        if not is_taken(error, type(record), "name"):
            raise
        raise taken(record) from error


def taken(record: Named) -> Conflict:
    """Return the refusal of a name that another of its kind has."""
    return Conflict(f"name: another {record._meta.verbose_name} is called {record.name}.")
