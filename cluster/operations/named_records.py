"""Save records with unique names."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from watcher_site import history
from watcher_site.database.uniqueness import refuse_taken
from watcher_site.refusals import Conflict

# A policy, a profile, an exclusion.
Named = TypeVar("Named", bound=Any)


def save(record: Named, fields: Sequence[str] | None = None, details: Mapping[str, Any] | None = None) -> None:
    """Save it as a new row, or just some fields of it. The database decides whose a name is.

    Args:
        details: what history tells of it.

    Raises:
        Conflict: another of its kind has the name.
    """
    with refuse_taken(type(record), "name", taken(record)):
        record.save() if fields is None else record.save_changes(fields)
        verb = "create" if fields is None else "update"
        history.record(f"{record._meta.model_name}.{verb}", record, details=details)


def taken(record: Named) -> Conflict:
    """Return the refusal of a name that another of its kind has."""
    return Conflict(f"name: another {record._meta.verbose_name} is called {record.name}.")
