"""Guarded writes: a row is changed only if the table still holds what was read, with other rows in the same commit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, Protocol

from django.db import connection, models, transaction

from watcher_site.database.queries import Bound


@dataclass(frozen=True)
class Change:
    """New values for columns of a row, to be written only if the guards, values by column, still stand in the table.

    With a ``condition`` it must return a row as well; if that is a locking query, the row stays locked until the
    transaction ends.
    """

    row: models.Model
    fields: tuple[str, ...]
    guards: Mapping[str, Any] = field(default_factory=dict)
    condition: Bound | None = None

    def compose(self) -> tuple[str, list[Any]]:
        """Return the UPDATE and its values."""
        guards = [comparable(value) for value in self.guards.values() if value is not None]
        nulls = frozenset([column for column, value in self.guards.items() if value is None])
        sql = compose_update(type(self.row), self.fields, tuple(self.guards), nulls)
        params = [*values_of([self.row], self.fields), self.row.pk, *guards]
        if self.condition is None:
            return sql, params
        return f"{sql} AND EXISTS ({self.condition.sql})", [*params, *self.condition.params]

    def write(self) -> bool:
        """Write it, and return whether its guards and its condition held."""
        with connection.cursor() as cursor:
            cursor.execute(*self.compose())
            return bool(cursor.rowcount)


def comparable(value: Any) -> Any:
    """Return a value of a guard as the database holds it: SQLite's times are texts."""
    return connection.ops.adapt_datetimefield_value(value) if isinstance(value, datetime) else value


class Announced(Protocol):
    """The notifications of a changed row, written with the change."""

    def parts(self, changed: str | None = None, keys: Sequence[int] = ()) -> tuple[list[str], str, list[Any]]:
        """Return the tables that an INSERT reads from, the INSERT, and the values of both.

        Without the name of a table of ``changed`` rows these are the rows with these keys.
        """

    def write(self, keys: Sequence[int]) -> None:
        """Write the notifications of the rows with these keys, in the open transaction."""


def write_together(change: Change, records: Sequence[models.Model] = (), announced: Announced | None = None) -> bool:
    """Write a change and, if its guards hold, the new and changed rows of other models, in one commit.

    New rows get their primary keys, but for those of models that are ``is_written_once``: what breaks a unique
    constraint of these was written before, and is left as it is. On PostgreSQL it is a single statement: each more
    would take another round trip, and the beginning and the end of a transaction two.
    """
    new = [record for record in records if not record.pk]
    others = [Change(record, record_fields(type(record))) for record in records if record.pk]
    if connection.vendor == "postgresql" and (new or announced):
        return write_in_one_statement(change, others, new, announced)
    with transaction.atomic():
        if not change.write():
            return False
        for other in others:
            other.write()
        for rows in by_model(new):
            insert(rows)
        if announced:
            announced.write([change.row.pk])
    return True


def by_model(rows: Sequence[models.Model]) -> list[list[models.Model]]:
    """Return rows by their models; those of models that are written once come first."""
    found: dict[type[models.Model], list[models.Model]] = {}
    for row in rows:
        found.setdefault(type(row), []).append(row)
    return [found[model] for model in sorted(found, key=is_written_once, reverse=True)]


def is_written_once(model: type[models.Model]) -> bool:
    return getattr(model, "is_written_once", False)


def write_in_one_statement(
    change: Change, others: Sequence[Change], new: Sequence[models.Model], announced: Announced | None
) -> bool:
    sql, params = change.compose()
    parts = [f"changed AS ({sql} RETURNING {'*' if announced else '1'})"]
    for place, other in enumerate(others):
        sql, values = other.compose()
        parts.append(f"ended{place} AS ({sql} AND EXISTS (SELECT 1 FROM changed))")  # noqa: S608
        params += values
    if announced:
        source, telling, values = announced.parts("changed")
        parts += [*source, f"announced AS ({telling})"]
        params += values
    groups = by_model(new)
    # The last part returns the keys, and thereby whether anything was written.
    keyed = groups.pop() if groups and not is_written_once(type(groups[-1][0])) else []
    for place, rows in enumerate(groups):
        model = type(rows[0])
        parts.append(f"made{place} AS ({compose_insert(model, len(rows), 'changed')})")
        params += values_of(rows, record_fields(model))
    last = "SELECT 1 FROM changed"
    if keyed:
        model = type(keyed[0])
        last = compose_insert(model, len(keyed), "changed")
        params += values_of(keyed, record_fields(model))
    return give_keys(keyed, f"WITH {', '.join(parts)} {last}", params)


def insert(rows: Sequence[models.Model]) -> None:
    """Write new rows of one model in one statement, and give them their primary keys."""
    if rows:
        model = type(rows[0])
        keyed = () if is_written_once(model) else rows
        give_keys(keyed, compose_insert(model, len(rows)), values_of(rows, record_fields(model)))


def give_keys(rows: Sequence[models.Model], sql: str, params: Sequence[Any]) -> bool:
    """Run a statement, give rows the primary keys that it returns, and return whether it returned any."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        keys = cursor.fetchall()
    for row, (key,) in zip(rows, keys, strict=False):
        row.pk = key
    return bool(keys)


def values_of(rows: Sequence[models.Model], fields: tuple[str, ...]) -> list[Any]:
    """Return the values of rows of one model as the database takes them, row by row."""
    columns = columns_of(type(rows[0]), fields)
    return [column.get_db_prep_save(getattr(row, column.attname), connection) for row in rows for column in columns]


@cache
def columns_of(model: type[models.Model], fields: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(model._meta.get_field(name) for name in fields)


@cache
def record_fields(model: type[models.Model]) -> tuple[str, ...]:
    return tuple(column.name for column in model._meta.local_concrete_fields if not column.primary_key)


@cache
def compose_update(
    model: type[models.Model], fields: tuple[str, ...], guards: tuple[str, ...], nulls: frozenset[str]
) -> str:
    quote = connection.ops.quote_name
    meta: Any = model._meta
    columns = ", ".join(f"{quote(column.column)} = %s" for column in columns_of(model, fields))
    conditions = [f"{quote(column)} {'IS NULL' if column in nulls else '= %s'}" for column in guards]
    where = " AND ".join([f"{quote(meta.pk.column)} = %s", *conditions])
    return f"UPDATE {quote(meta.db_table)} SET {columns} WHERE {where}"  # noqa: S608 (names of our own)


@cache
def compose_insert(model: type[models.Model], count: int, source: str = "") -> str:
    """Write so many rows, or with a ``source`` none if that has no row."""
    quote = connection.ops.quote_name
    meta: Any = model._meta
    columns = columns_of(model, record_fields(model))
    names = ", ".join(quote(column.column) for column in columns)
    if source:
        # A literal in a SELECT has no type of its own. The length is left out: a cast to it would cut.
        values = ", ".join(f"%s::{column.db_type(connection).split('(')[0]}" for column in columns)
        rows = " UNION ALL ".join([f"SELECT {values} FROM {source}"] * count)  # noqa: S608
    else:
        rows = "VALUES " + ", ".join([f"({', '.join(['%s'] * len(columns))})"] * count)
    once = "ON CONFLICT DO NOTHING " if is_written_once(model) else ""
    key = quote(meta.pk.column)
    return f"INSERT INTO {quote(meta.db_table)} ({names}) {rows} {once}RETURNING {key}"
