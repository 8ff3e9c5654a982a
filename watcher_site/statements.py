"""Statements composed once a process and run many times, for the few that a worker runs at every step.

The ORM composes a statement anew each time, which takes several times as long as running it. Here a statement keeps
its text; only its values are given anew. The same on every database that Django speaks.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from django.db import connection, models
from django.db.models.expressions import Expression


class Placeholder(Expression):
    """Stands in a query for an integer that is given by this name when the query runs."""

    def __init__(self, name: str) -> None:
        super().__init__(output_field=models.IntegerField())
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        return "%s", (self,)


class Query:
    """A query with `Placeholder`s, composed at its first run."""

    def __init__(self, queryset: models.QuerySet[Any]) -> None:
        self.queryset = queryset
        self.composed: dict[str, tuple[str, Sequence[Any]]] = {}

    def compose(self, values: Mapping[str, Any]) -> tuple[str, list[Any]]:
        if connection.vendor not in self.composed:
            self.composed[connection.vendor] = self.queryset.query.sql_with_params()
        sql, params = self.composed[connection.vendor]
        return sql, [values[param.name] if isinstance(param, Placeholder) else param for param in params]

    def rows(self, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows as the database gives them."""
        with connection.cursor() as cursor:
            cursor.execute(*self.compose(values))
            return cursor.fetchall()

    def instances(self, **values: Any) -> list[Any]:
        """Return the rows as instances of the query's model."""
        return list(self.queryset.model._base_manager.raw(*self.compose(values)))


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
