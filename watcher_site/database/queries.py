"""Queries whose SQL is compiled once per process, for those that run at every step or request.

The ORM compiles a query at each execution, which takes several times as long as running it. Here the SQL is kept, and
only the values change. It works on every database that Django supports.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass
from functools import partialmethod
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections, models, transaction
from django.db.backends.postgresql.base import ServerBindingCursor
from django.db.models.expressions import Expression
from django.db.models.query import ModelIterable, get_related_populators


class Placeholder(Expression):
    """A parameter of a query, of the type of a field or an integer, whose value is given at each execution."""

    def __init__(self, name: str, field: Any = None) -> None:
        super().__init__(output_field=field or models.IntegerField())
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        return "%s", (self,)


@dataclass(frozen=True)
class Bound:
    """A query with the values of its placeholders."""

    sql: str
    params: Sequence[Any]

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows as tuples of the values that the database returns."""
        with connection.cursor() as cursor:
            cursor.execute(self.sql, self.params)
            return cursor.fetchall()


class Query:
    """A query with `Placeholder`s, compiled at its first execution, with the same rows as its queryset."""

    sql = ""

    def __init__(self, queryset: models.QuerySet[Any]) -> None:
        self.queryset = queryset

    def compose(self) -> None:
        # Django compiles a locking query only in a transaction, which may be empty.
        with transaction.atomic(savepoint=False) if self.queryset.query.select_for_update else nullcontext():
            self.compiler = self.queryset.query.get_compiler(DEFAULT_DB_ALIAS)
            sql, self.params = self.compiler.as_sql()
        self.placeholders = [(n, param) for n, param in enumerate(self.params) if isinstance(param, Placeholder)]
        self.converters = self.compiler.get_converters([column for column, *_ in self.compiler.select or ()])
        self.make = InstanceMaker(self.compiler) if self.queryset._iterable_class is ModelIterable else tuple
        # Set last: other threads use the query as soon as this is set.
        self.sql = sql

    def rows(self, **values: Any) -> list[Any]:
        """Return the rows of the queryset: instances of its model, or the selected values."""
        connection = connections[DEFAULT_DB_ALIAS]
        params = self.params_for(values, connection)
        cursor = kept_cursor(connection)
        cursor.execute(self.sql, params)
        found: Any = cursor.fetchall()
        if self.converters:
            compiler = copy(self.compiler)
            compiler.connection = connection
            found = compiler.apply_converters(found, self.converters)
        return list(map(self.make, found))

    def bind(self, **values: Any) -> Bound:
        """Return the SQL and the values, to run the query alone or as a condition of a `Change`."""
        params = self.params_for(values, connection)
        return Bound(self.sql, params)

    def params_for(self, values: Mapping[str, Any], connection: Any) -> list[Any]:
        if not self.sql:
            self.compose()
        params = list(self.params)
        for position, placeholder in self.placeholders:
            value = values[placeholder.name]
            params[position] = placeholder.output_field.get_db_prep_value(value, connection)
        return params


class PreparedCursor(ServerBindingCursor):
    """A cursor whose statements are prepared: PostgreSQL plans each of them once per connection.

    Other queries of the site are not prepared. PostgreSQL may choose one plan for all values of a prepared statement;
    for a filter by a rare value, that plan took seconds with 5,000,000 rows instead of milliseconds.
    """

    execute = partialmethod(ServerBindingCursor.execute, prepare=True)  # type: ignore[attr-defined]


def kept_cursor(connection: Any) -> Any:
    """Return the connection's cursor for statements whose rows are fetched immediately.

    Creating a cursor takes Django and the driver about as long as sending a query with it.
    """
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    if connection.queries_logged:
        return connection.cursor()
    made_for, cursor = getattr(connection, "kept_cursor", (None, None))
    if made_for is not connection.connection:
        cursor = connection.cursor()
        if connection.vendor == "postgresql":
            cursor.cursor = PreparedCursor(connection.connection)  # type: ignore[call-arg]
        connection.kept_cursor = connection.connection, cursor
    return cursor


class InstanceMaker:
    """Creates model instances from rows, with annotations and selected related instances."""

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
