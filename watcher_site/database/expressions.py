"""SQL expressions that Django lacks, for PostgreSQL and SQLite."""

from typing import Any

from django.db.models import Func, Subquery, TextField


class JSONArray(Subquery):
    """The values of a subquery's single column ``value``, in the order of its rows, as a JSON array in a text."""

    template = "array_to_json(ARRAY(%(subquery)s))::text"
    output_field = TextField()

    def as_sqlite(self, compiler: Any, connection: Any) -> Any:
        template = "(SELECT json_group_array(value) FROM (%(subquery)s) AS listed)"
        return self.as_sql(compiler, connection, template=template)


class JSONIntegers(JSONArray):
    """The integers of a subquery's single column ``value`` as a JSON array in a text.

    For the 189 permissions of a group, PostgreSQL executes a query with this text in 74 microseconds, and with
    ``array_to_json`` in 121.
    """

    template = "translate(ARRAY(%(subquery)s)::text, '{}', '[]')"


class UUIDText(Func):
    """A UUID as a text with hyphens. SQLite stores UUIDs as texts without hyphens."""

    template = "(%(expressions)s)::text"
    output_field = TextField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra_context: Any) -> Any:
        parts = [f"substr(%(expressions)s, {start}, {length})" for start, length in PARTS]
        return self.as_sql(compiler, connection, template=" || '-' || ".join(parts))


# The start and length of the five groups of digits.
PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
