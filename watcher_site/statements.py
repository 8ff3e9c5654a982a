"""Statements composed once a process and run many times, for the few that a worker runs at every step.

The ORM composes a statement anew each time, which takes several times as long as running it. Here a statement keeps
its text; only its values are given anew. The same on every database that Django speaks.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cache, cached_property
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.models.expressions import Expression
from django.db.models.query import ModelIterable, get_related_populators


class Placeholder(Expression):
    """Stands in a query for a value of a field, an integer if none is named, that is given when the query runs."""

    def __init__(self, name: str, field: Any = None) -> None:
        super().__init__(output_field=field or models.IntegerField())
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        return "%s", (self,)


class Query:
    """A query with `Placeholder`s, composed at its first run."""

    def __init__(self, queryset: models.QuerySet[Any]) -> None:
        self.queryset = queryset

    @cached_property
    def composed(self) -> "ComposedQuery":
        return ComposedQuery(self.queryset)

    def rows(self, **values: Any) -> list[Any]:
        """Return what the queryset would give: instances of its model, or the values that it asks for."""
        return self.composed.rows(values)


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
        with connection.cursor() as cursor:
            cursor.execute(self.sql, params)
            found: Any = cursor.fetchall()
        if self.converters:
            compiler = copy(self.compiler)
            compiler.connection = connection
            found = compiler.apply_converters(found, self.converters)
        return [self.make(row) for row in found]


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


def update(row: models.Model, fields: Sequence[str], guards: Mapping[str, Any]) -> bool:
    """Write these columns of a row if the guards, values by column, still stand in the table; say whether they did."""
    meta = row._meta
    changes: list[Any] = [meta.get_field(name) for name in fields]
    nulls = frozenset(column for column, value in guards.items() if value is None)
    sql = compose_update(type(row), tuple(fields), tuple(guards), nulls)
    values = [field.get_db_prep_save(getattr(row, field.attname), connection) for field in changes]
    with connection.cursor() as cursor:
        cursor.execute(sql, [*values, row.pk, *(value for value in guards.values() if value is not None)])
        return bool(cursor.rowcount)


@cache
def compose_update(model: type[Any], fields: tuple[str, ...], guards: tuple[str, ...], nulls: frozenset[str]) -> str:
    quote = connection.ops.quote_name
    columns = ", ".join(f"{quote(model._meta.get_field(name).column)} = %s" for name in fields)
    conditions = [f"{quote(column)} {'IS NULL' if column in nulls else '= %s'}" for column in guards]
    where = " AND ".join([f"{quote(model._meta.pk.column)} = %s", *conditions])
    return f"UPDATE {quote(model._meta.db_table)} SET {columns} WHERE {where}"  # noqa: S608 (names of our own)


def insert(rows: Iterable[models.Model]) -> None:
    """Write new rows of one model in one statement, and give them their primary keys."""
    rows = list(rows)
    if not rows:
        return
    model = type(rows[0])
    fields = model._meta.local_concrete_fields[1:]
    values = [field.get_db_prep_save(getattr(row, field.attname), connection) for row in rows for field in fields]
    with connection.cursor() as cursor:
        cursor.execute(compose_insert(model, len(rows)), values)
        for row, (key,) in zip(rows, cursor.fetchall(), strict=True):
            row.pk = key


@cache
def compose_insert(model: type[Any], count: int) -> str:
    quote = connection.ops.quote_name
    columns = [quote(field.column) for field in model._meta.local_concrete_fields[1:]]
    one = f"({', '.join(['%s'] * len(columns))})"
    return (
        f"INSERT INTO {quote(model._meta.db_table)} ({', '.join(columns)})"  # noqa: S608 (names of our own)
        f" VALUES {', '.join([one] * count)} RETURNING {quote(model._meta.pk.column)}"
    )
