"""SQL that Django has no word for, the same on PostgreSQL and SQLite."""

from typing import Any

from django.db.models import Func, Subquery, TextField


class JSONArray(Subquery):
    """The column ``value`` of a subquery's rows, its only one, in their order, as a JSON array in a text."""

    template = "array_to_json(ARRAY(%(subquery)s))::text"
    output_field = TextField()

    def as_sqlite(self, compiler: Any, connection: Any) -> Any:
        template = "(SELECT json_group_array(value) FROM (%(subquery)s) AS listed)"
        return self.as_sql(compiler, connection, template=template)


class UUIDText(Func):
    """A UUID as people write it. SQLite has no such type, and keeps the digits alone."""

    template = "(%(expressions)s)::text"
    output_field = TextField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra_context: Any) -> Any:
        parts = [f"substr(%(expressions)s, {start}, {length})" for start, length in PARTS]
        return self.as_sql(compiler, connection, template=" || '-' || ".join(parts))


# Where the five groups of digits begin, and how long they are.
PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
