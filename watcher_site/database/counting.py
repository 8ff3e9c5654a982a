"""Counts of rows up to a limit: counting all rows of a large table takes PostgreSQL seconds."""

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

# The limit for the rows of a list or of a state on pages.
MOST_COUNTED = 10_000


def count_up_to(most: int, querysets: Sequence[QuerySet[Any]]) -> list[int]:
    """Return the number of rows of each queryset, or ``most`` + 1 if there are more, in one query."""
    counts: list[str] = []
    values: list[Any] = []
    for rows in querysets:
        try:
            sql, params = rows.order_by().values("pk")[: most + 1].query.sql_with_params()
        except EmptyResultSet:  # The conditions exclude all rows.
            counts.append("0")
            continue
        counts.append(f"(SELECT COUNT(*) FROM ({sql}) AS counted)")  # noqa: S608 (composed by Django)
        values += params
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(counts)}", values)
        return list(cursor.fetchone())
