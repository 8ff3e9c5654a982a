"""Guarded writes, which change a row only if it still has the values that were read, together with other rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from itertools import chain
from typing import Any, Protocol

from django.db import DEFAULT_DB_ALIAS, connection, connections, models, transaction

from watcher_site.database.queries import Bound, kept_cursor


class WrittenOnce:
    """A mixin of models whose new rows are ignored if they violate a unique constraint, because they exist already."""


Rows = dict[type[models.Model], list[models.Model]]
Part = tuple[str, Sequence[Any]]
"""A part of a statement, with the values of its placeholders."""


@dataclass(frozen=True)
class Change:
    """New values for columns of a row, written only if the row still has the guards' values, by column.

    Each of the ``conditions`` must also return a row. The row of a locking query stays locked until the transaction
    ends.
    """

    row: models.Model
    fields: tuple[str, ...]
    guards: Mapping[str, Any] = field(default_factory=dict)
    conditions: Sequence[Bound] = ()

    def compose(self, database: Any) -> tuple[str, list[Any]]:
        """Return the UPDATE and its values."""
        # SQLite stores times as texts.
        adapt = database.ops.adapt_datetimefield_value
        guards = [adapt(value) if isinstance(value, datetime) else value for value in self.guards.values()]
        sql = compose_update(type(self.row), self.fields, tuple(self.guards))
        params = [*values_of([self.row], self.fields, database), self.row.pk, *guards]
        for condition in self.conditions:
            sql = f"{sql} AND EXISTS ({condition.sql})"
            params += condition.params
        return sql, params

    def write(self, database: Any) -> bool:
        """Write the change, and return whether its guards and conditions held."""
        with database.cursor() as cursor:
            cursor.execute(*self.compose(database))
            return bool(cursor.rowcount)


class Announced(Protocol):
    """The notifications of a changed row, written with the change."""

    def parts(self, *, changed: str | None = None, keys: Sequence[int] = ()) -> list[Part]:
        """Return the common table expressions of an INSERT, and the INSERT as the last part.

        Args:
            changed: the name of a table of the changed rows.
            keys: the primary keys of the rows, if ``changed`` is None.
        """

    def write(self, keys: Sequence[int]) -> None:
        """Write the notifications of the rows with these keys, in the open transaction."""


def write_together(change: Change, records: Sequence[models.Model] = (), announced: Announced | None = None) -> bool:
    """Write a change and, if its guards hold, the new and changed rows of other models, in one commit.

    New rows get their primary keys, except those of `WrittenOnce` models. On PostgreSQL it is one statement: each
    further one would take another round trip, and the beginning and end of a transaction two.
    """
    database = connections[DEFAULT_DB_ALIAS]
    further = [Change(record, record_fields(type(record))) for record in records if record.pk]
    new: Rows = {}
    for record in records:
        if not record.pk:
            new.setdefault(type(record), []).append(record)
    if not (new or further or announced):
        return change.write(database)
    if database.vendor == "postgresql" and (new or announced):
        return write_in_one_statement(change, further, new, announced, database)
    with transaction.atomic():
        if not change.write(database):
            return False
        for row in further:
            row.write(database)
        for rows in new.values():
            insert(rows)
        if announced:
            announced.write([change.row.pk])
    return True


def write_in_one_statement(
    change: Change, further: Sequence[Change], new: Rows, announced: Announced | None, database: Any
) -> bool:
    sql, params = change.compose(database)
    tables: list[Part] = [(f"changed AS ({sql} RETURNING {'*' if announced else '1'})", params)]
    for place, row in enumerate(further):
        sql, params = row.compose(database)
        tables.append((f"further{place} AS ({sql} AND EXISTS (SELECT 1 FROM changed))", params))  # noqa: S608
    if announced:
        *source, (sql, values) = announced.parts(changed="changed")
        tables += [*source, (f"announced AS ({sql})", values)]
    # The last part returns the keys of one model, which show whether anything was written.
    keyed = next((model for model in reversed(new) if not issubclass(model, WrittenOnce)), None)
    last: Part = ("SELECT 1 FROM changed", [])
    for model, rows in new.items():
        sql, params = compose_insert(model, len(rows), "changed"), values_of(rows, record_fields(model), database)
        if model is keyed:
            last = (sql, params)
        else:
            tables.append((f"inserted{len(tables)} AS ({sql})", params))
    sqls, values_by_part = zip(*tables, last, strict=True)
    statement = f"WITH {', '.join(sqls[:-1])} {sqls[-1]}"
    return set_keys(new[keyed] if keyed else [], statement, list(chain(*values_by_part)), database)


def insert(rows: Sequence[models.Model]) -> None:
    """Write new rows of one model in one statement, and set their primary keys."""
    if rows:
        model, database = type(rows[0]), connections[DEFAULT_DB_ALIAS]
        keyed = () if issubclass(model, WrittenOnce) else rows
        values = values_of(rows, record_fields(model), database)
        set_keys(keyed, compose_insert(model, len(rows)), values, database)


def set_keys(rows: Sequence[models.Model], sql: str, params: Sequence[Any], database: Any) -> bool:
    """Run a statement, set the primary keys that it returns on rows, and return whether it returned any."""
    cursor = kept_cursor(database)
    cursor.execute(sql, params)
    keys = cursor.fetchall()
    for row, (key,) in zip(rows, keys, strict=False):
        row.pk = key
    return bool(keys)


def values_of(rows: Sequence[models.Model], fields: tuple[str, ...], database: Any) -> list[Any]:
    """Return the values of rows of one model in the form that the database takes, row by row.

    They already have the types of their fields (``prepared``): converting them again takes Django longer than sending
    them.
    """
    columns = columns_of(type(rows[0]), fields)
    values = ((column, getattr(row, column.attname)) for row in rows for column in columns)
    return [
        None if value is None else column.get_db_prep_value(value, database, prepared=True) for column, value in values
    ]


@cache
def columns_of(model: type[models.Model], fields: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(model._meta.get_field(name) for name in fields)


@cache
def record_fields(model: type[models.Model]) -> tuple[str, ...]:
    return tuple(column.name for column in model._meta.local_concrete_fields if not column.primary_key)


@cache
def compose_update(model: type[models.Model], fields: tuple[str, ...], guards: tuple[str, ...]) -> str:
    quote = connection.ops.quote_name
    # Without statistics, PostgreSQL could find the row by an index of a guarded column, such as the state of thousands
    # of rows. It uses no index for this operator, so that it finds the row by its key.
    is_equal = "IS NOT DISTINCT FROM" if connection.vendor == "postgresql" else "IS"
    meta: Any = model._meta
    columns = ", ".join(f"{quote(column.column)} = %s" for column in columns_of(model, fields))
    conditions = [f"{quote(column)} {is_equal} %s" for column in guards]
    where = " AND ".join([f"{quote(meta.pk.column)} = %s", *conditions])
    return f"UPDATE {quote(meta.db_table)} SET {columns} WHERE {where}"  # noqa: S608 (names of our own)


@cache
def compose_insert(model: type[models.Model], count: int, source: str = "") -> str:
    """Return an INSERT of this number of rows, or of none if the table ``source`` is empty."""
    quote = connection.ops.quote_name
    meta: Any = model._meta
    columns = columns_of(model, record_fields(model))
    names = ", ".join(quote(column.column) for column in columns)
    if source:
        # Parameters in a SELECT need a type. The length is omitted, because a cast to it would truncate.
        values = ", ".join(f"%s::{column.db_type(connection).split('(')[0]}" for column in columns)
        rows = " UNION ALL ".join([f"SELECT {values} FROM {source}"] * count)  # noqa: S608
    else:
        rows = "VALUES " + ", ".join([f"({', '.join(['%s'] * len(columns))})"] * count)
    once = "ON CONFLICT DO NOTHING " if issubclass(model, WrittenOnce) else ""
    key = quote(meta.pk.column)
    return f"INSERT INTO {quote(meta.db_table)} ({names}) {rows} {once}RETURNING {key}"
