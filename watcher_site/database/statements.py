"""Statements composed once a process and run many times, for the few that a worker runs at every step.

The ORM composes a statement anew each time, which takes several times as long as running it. Here a statement keeps
its text; only its values are given anew. The same on every database that Django speaks.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property
from typing import Any, Protocol

from django.db import DEFAULT_DB_ALIAS, connection, connections, models, transaction
from django.db.models.expressions import Expression
from django.db.models.query import ModelIterable, get_related_populators


class Placeholder(Expression):
    """Stands in a query for a value of a field, an integer if none is named, that is given when the query runs."""

    def __init__(self, name: str, field: Any = None) -> None:
        super().__init__(output_field=field or models.IntegerField())
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        return "%s", (self,)


@dataclass(frozen=True)
class Bound:
    """A query with its values."""

    sql: str
    params: Sequence[Any]

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows as the database gives them."""
        with connection.cursor() as cursor:
            cursor.execute(self.sql, self.params)
            return cursor.fetchall()

    def beside(self, other: "Bound | None") -> "Bound":
        """Return a query that finds a row where both do."""
        if other is None:
            return self
        both = f"SELECT 1 WHERE EXISTS ({other.sql}) AND EXISTS ({self.sql})"
        return Bound(both, [*other.params, *self.params])


class Query:
    """A query with `Placeholder`s, composed at its first run."""

    def __init__(self, queryset: models.QuerySet[Any]) -> None:
        self.queryset = queryset

    @cached_property
    def composed(self) -> "ComposedQuery":
        # Django composes a locking query only inside of a transaction, which may be an empty one.
        with transaction.atomic(savepoint=False) if self.queryset.query.select_for_update else nullcontext():
            return ComposedQuery(self.queryset)

    def rows(self, **values: Any) -> list[Any]:
        """Return what the queryset would give: instances of its model, or the values that it asks for."""
        return self.composed.rows(values)

    def bind(self, **values: Any) -> Bound:
        """Return the query's text and its values, to run it alone or as the condition of a `Change`."""
        return Bound(self.composed.sql, [bind(param, values, connection) for param in self.composed.params])


class ComposedQuery:
    """A query's text, and what becomes of the rows that it finds, as Django's own iterators would have it."""

    def __init__(self, queryset: models.QuerySet[Any]) -> None:
        self.compiler = queryset.query.get_compiler(DEFAULT_DB_ALIAS)
        self.sql, self.params = self.compiler.as_sql()
        self.converters = self.compiler.get_converters([column for column, *_ in self.compiler.select or ()])
        self.make = InstanceMaker(self.compiler) if queryset._iterable_class is ModelIterable else tuple

    def rows(self, values: Mapping[str, Any]) -> list[Any]:
        connection = connections[DEFAULT_DB_ALIAS]
        params = [bind(param, values, connection) for param in self.params]
        cursor = kept_cursor(connection)
        cursor.execute(self.sql, params)
        found: Any = cursor.fetchall()
        if self.converters:
            compiler = copy(self.compiler)
            compiler.connection = connection
            found = compiler.apply_converters(found, self.converters)
        return [self.make(row) for row in found]


def kept_cursor(connection: Any) -> Any:
    """Return the connection's cursor for statements whose rows are fetched at once.

    To make a cursor takes Django and the driver about as long as to send a query with it.
    """
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    if connection.queries_logged:
        return connection.cursor()
    made_for, cursor = getattr(connection, "kept_cursor", (None, None))
    if made_for is not connection.connection:
        cursor = connection.cursor()
        connection.kept_cursor = connection.connection, cursor
    return cursor


def bind(param: Any, values: Mapping[str, Any], connection: Any) -> Any:
    if not isinstance(param, Placeholder):
        return param
    return param.output_field.get_db_prep_value(values[param.name], connection)


class InstanceMaker:
    """Makes a row into an instance, with what was annotated and with the related instances that were selected."""

    def __init__(self, compiler: Any) -> None:
        self.model = compiler.klass_info["model"]
        positions = compiler.klass_info["select_fields"]
        self.columns = slice(positions[0], positions[-1] + 1)
        self.names = [column.target.attname for column, *_ in compiler.select[self.columns]]
        self.annotations = compiler.annotation_col_map or {}
        self.populators = get_related_populators(compiler.klass_info, compiler.select, DEFAULT_DB_ALIAS)  # type: ignore[call-arg]

    def __call__(self, row: Sequence[Any]) -> Any:
        instance = self.model.from_db(DEFAULT_DB_ALIAS, self.names, row[self.columns])
        for populator in self.populators:
            populator.populate(row, instance)
        for name, position in self.annotations.items():
            setattr(instance, name, row[position])
        return instance


@dataclass(frozen=True)
class Change:
    """New values for columns of a row, to be written only if the guards, values by column, still stand in the table.

    With a ``condition`` it must return a row as well; if that is a locking query, the row stays locked until the
    transaction ends.
    """

    row: models.Model
    fields: Sequence[str]
    guards: Mapping[str, Any] = field(default_factory=dict)
    condition: Bound | None = None

    @property
    def sql(self) -> str:
        nulls = frozenset(column for column, value in self.guards.items() if value is None)
        sql = compose_update(type(self.row), tuple(self.fields), tuple(self.guards), nulls)
        return f"{sql} AND EXISTS ({self.condition.sql})" if self.condition else sql

    @property
    def params(self) -> list[Any]:
        guards = [comparable(value) for value in self.guards.values() if value is not None]
        condition = self.condition.params if self.condition else []
        return [*prepare(self.row, self.fields), self.row.pk, *guards, *condition]

    def write(self) -> bool:
        """Write it, and say whether it was to be written."""
        with connection.cursor() as cursor:
            cursor.execute(self.sql, self.params)
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
    """Write a change and, if it was to be written, the new and changed rows of other models, in one commit.

    New rows get their primary keys, but for those of models that are ``is_written_once``: what breaks a unique
    constraint of these was written before, and is left as it is. On PostgreSQL it is a single statement: each more
    would take another round trip, and the beginning and the end of a transaction two.
    """
    new, ended = [record for record in records if not record.pk], [record for record in records if record.pk]
    changes = [change, *(Change(record, record_fields(type(record))) for record in ended)]
    if connection.vendor == "postgresql" and (new or announced):
        return write_in_one_statement(changes, new, announced)
    with transaction.atomic():
        if not change.write():
            return False
        for other in changes[1:]:
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
    return sorted(found.values(), key=lambda group: not is_written_once(type(group[0])))


def is_written_once(model: type[models.Model]) -> bool:
    return getattr(model, "is_written_once", False)


def write_in_one_statement(
    changes: Sequence[Change], new: Sequence[models.Model], announced: Announced | None
) -> bool:
    parts = [f"changed AS ({changes[0].sql} RETURNING {'*' if announced else '1'})"]
    for place, change in enumerate(changes[1:]):
        parts.append(f"ended{place} AS ({change.sql} AND EXISTS (SELECT 1 FROM changed))")  # noqa: S608
    params = [param for change in changes for param in change.params]
    if announced:
        source, telling, values = announced.parts("changed")
        parts += [*source, f"announced AS ({telling})"]
        params += values
    groups = by_model(new)
    # The last one tells of the keys, and thereby whether anything was written.
    keyed = groups.pop() if groups and not is_written_once(type(groups[-1][0])) else []
    for place, rows in enumerate(groups):
        parts.append(f"made{place} AS ({compose_insert(type(rows[0]), len(rows), 'changed')})")
        params += values_of(rows)
    last = compose_insert(type(keyed[0]), len(keyed), "changed") if keyed else "SELECT 1 FROM changed"
    return give_keys(keyed, f"WITH {', '.join(parts)} {last}", [*params, *values_of(keyed)])


def insert(rows: Sequence[models.Model]) -> None:
    """Write new rows of one model in one statement, and give them their primary keys."""
    if rows:
        keyed = () if is_written_once(type(rows[0])) else rows
        give_keys(keyed, compose_insert(type(rows[0]), len(rows)), values_of(rows))


def give_keys(rows: Sequence[models.Model], sql: str, params: Sequence[Any]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        keys = cursor.fetchall()
    for row, (key,) in zip(rows, keys, strict=False):
        row.pk = key
    return bool(keys)


def values_of(rows: Sequence[models.Model]) -> list[Any]:
    return [value for row in rows for value in prepare(row, record_fields(type(row)))]


def prepare(row: models.Model, fields: Sequence[str]) -> list[Any]:
    """Return the values of a row's columns as the database takes them."""
    columns: list[Any] = [row._meta.get_field(name) for name in fields]
    return [column.get_db_prep_save(getattr(row, column.attname), connection) for column in columns]


@cache
def record_fields(model: type[models.Model]) -> tuple[str, ...]:
    return tuple(column.name for column in model._meta.local_concrete_fields if not column.primary_key)


@cache
def compose_update(model: type[Any], fields: tuple[str, ...], guards: tuple[str, ...], nulls: frozenset[str]) -> str:
    quote = connection.ops.quote_name
    columns = ", ".join(f"{quote(model._meta.get_field(name).column)} = %s" for name in fields)
    conditions = [f"{quote(column)} {'IS NULL' if column in nulls else '= %s'}" for column in guards]
    where = " AND ".join([f"{quote(model._meta.pk.column)} = %s", *conditions])
    return f"UPDATE {quote(model._meta.db_table)} SET {columns} WHERE {where}"  # noqa: S608 (names of our own)


@cache
def compose_insert(model: type[models.Model], count: int, source: str = "") -> str:
    """Write so many rows, or with a ``source`` none if that has no row."""
    quote = connection.ops.quote_name
    meta: Any = model._meta
    columns = [meta.get_field(name) for name in record_fields(model)]
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
