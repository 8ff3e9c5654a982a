"""The rows of objects in a reading or a topology file: matching, comparing and writing them in few statements."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import DataError, IntegrityError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from cluster.json_lines import InvalidValue

BATCH = 500
# The errors of writing values that the tables do not accept, or that conflict with concurrent writes.
CONFLICTS = (InvalidValue, ValueError, DataError, IntegrityError)


def describe_conflict(problem: Exception) -> str:
    """Return one line about a conflict with the site's tables.

    The other lines of a database error contain the row, which may contain secrets.
    """
    return f"The tables of the site do not accept an object of the cloud: {str(problem).partition(chr(10))[0]}"


@dataclass(frozen=True)
class Collection:
    """A list of objects of one kind, with its model and the attribute that identifies objects besides the UUID.

    ``references`` are the attributes that refer to other objects. ``columns`` are the columns of attributes with
    another name.
    """

    name: str
    model: Any
    kind: str
    key: str
    references: frozenset[str] = frozenset()
    columns: Mapping[str, str] = field(default_factory=dict)

    def column(self, attribute: str) -> str:
        return self.columns.get(attribute, attribute)

    def rows(self) -> list[Any]:
        """Lock and return all rows, including deleted ones, in the order of their keys to avoid deadlocks."""
        return list(self.model.objects.select_for_update(no_key=True).order_by("pk"))


@dataclass
class Entry:
    """An object and its row; ``changed`` contains the columns that differ.

    ``links`` are the targets of foreign keys, which may not be saved yet.
    """

    path: tuple[str | int, ...]
    item: Mapping[str, Any]
    row: Any
    is_new: bool
    changed: set[str] = field(default_factory=set)
    links: dict[str, Any] = field(default_factory=dict)
    members_changed: bool = False

    def set(self, column: str, value: Any) -> None:
        if getattr(self.row, column) != value:
            setattr(self.row, column, value)
            self.changed.add(column)

    def link(self, column: str, target: Any) -> None:
        self.links[column] = target
        before = getattr(self.row, f"{column}_id")
        if before != (target.pk if target else None) or (target and target.pk is None):
            self.changed.add(column)

    def read(self, attribute: str, value: Any) -> Any:
        """Return the value of an attribute for its column."""
        if attribute == "uuid":
            return UUID(value)
        return self.read_time(value) if attribute == "created_at" else value

    def read_time(self, value: str) -> datetime:
        try:
            moment = parse_datetime(value)
        except ValueError:
            moment = None
        if moment is None:
            raise InvalidValue([*self.path, "created_at"], f"{value!r} is not a date with a time.")
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Report:
    created: int
    changed: int
    unchanged: int


def match_rows(items: Iterable[Mapping[str, Any]], collection: Collection, rows: Iterable[Any]) -> list[Entry]:
    """Find or create the row of each object, and set the columns that the object contains, without saving."""
    rows, key = list(rows), collection.key
    by_uuid = {row.uuid: row for row in rows}
    # A primary key also identifies a deleted row.
    by_key = {getattr(row, key): row for row in reversed(rows) if not row.deleted_at or key == "id"}
    entries = []
    for position, item in enumerate(items):
        namesake = by_key.get(item[key])
        row = by_uuid.get(UUID(item["uuid"])) if "uuid" in item else namesake
        if "uuid" in item and namesake and namesake is not row:
            raise InvalidValue(
                [collection.name, position, key], f"{item[key]} stands in the cloud with the uuid {namesake.uuid}."
            )
        entry = Entry((collection.name, position), item, row or collection.model(), row is None)
        for attribute, value in item.items():
            if attribute not in collection.references:
                entry.set(collection.column(attribute), entry.read(attribute, value))
        if entry.row.deleted_at:
            entry.set("deleted_at", None)
        entries.append(entry)
    return entries


def require_unique(entries: Iterable[Entry], collection: Collection, attribute: str, rows: Iterable[Any]) -> None:
    """Raise `InvalidValue` if an object has the same value of an attribute as another row."""
    column = collection.column(attribute)
    holders = {row.pk: row for row in rows if not row.deleted_at}
    written = {id(entry.row) for entry in entries}
    values = {getattr(row, column) for row in holders.values() if id(row) not in written}
    for entry in entries:
        if attribute in entry.item and entry.item[attribute] in values:
            value = entry.item[attribute]
            raise InvalidValue([*entry.path, attribute], f"{value} is that of another {collection.kind}.")


def index_rows(entries: Iterable[Entry], rows: Iterable[Any], column: str) -> dict[Any, Any]:
    """Return the rows that exist after the update, existing and new ones, by a column."""
    everything = [*reversed(list(rows)), *(entry.row for entry in entries)]
    return {getattr(row, column): row for row in everything if not row.deleted_at}


def find_by_name(names: Mapping[Any, Any], name: Any, kind: str, path: Iterable[str | int]) -> Any:
    """Return the row with a name, or None for None.

    Raises:
        InvalidValue: there is no such row.
    """
    if name is None:
        return None
    if name not in names:
        raise InvalidValue([*path], f"there is no {kind} {name}.")
    return names[name]


def write_entries(entries: Iterable[Entry], changed_at: datetime | None = None) -> None:
    """Insert the new rows and update the changed ones, in few statements.

    Args:
        changed_at: the time of the changes, by default now.
    """
    entries = list(entries)
    for entry in entries:
        for column, target in entry.links.items():
            setattr(entry.row, column, target)
    new = [entry for entry in entries if entry.is_new]
    changed = [entry for entry in entries if entry.changed and not entry.is_new]
    for entry in changed:
        entry.row.updated_at = changed_at or timezone.now()
    columns = {column for entry in changed for column in entry.changed}
    if new:
        type(new[0].row).objects.bulk_create([entry.row for entry in new], batch_size=BATCH)
    if changed:
        rows = [entry.row for entry in changed]
        type(rows[0]).objects.bulk_update(rows, [*sorted(columns), "updated_at"], batch_size=BATCH)


def write_pairs(entries: list[tuple[Entry, list[Any]]], through: Any, owner: str, member: str) -> None:
    """Update a many-to-many table so that the row of each entry has exactly these members."""
    if not entries:
        return
    owner, member = f"{owner}_id", f"{member}_id"
    existing = through.objects.filter(**{f"{owner}__in": [entry.row.pk for entry, _ in entries]})
    keys = {pair: key for key, *pair in existing.values_list("pk", owner, member) for pair in [tuple(pair)]}
    pairs = {(entry.row.pk, row.pk): entry for entry, rows in entries for row in rows}
    owners = {entry.row.pk: entry for entry, _ in entries}
    for key, _ in pairs.keys() ^ keys.keys():
        owners[key].members_changed = True
    through.objects.filter(pk__in=[key for pair, key in keys.items() if pair not in pairs]).delete()
    new = [through(**{owner: pair[0], member: pair[1]}) for pair in pairs if pair not in keys]
    through.objects.bulk_create(new, batch_size=BATCH)


def count_entries(entries: Iterable[Entry]) -> Report:
    entries = list(entries)
    created = sum(entry.is_new for entry in entries)
    changed = sum(bool(entry.changed or entry.members_changed) and not entry.is_new for entry in entries)
    return Report(created, changed, len(entries) - created - changed)
