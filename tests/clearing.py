"""What a test that commits leaves behind is swept away, in one round trip.

Django's own way truncates every table and makes permissions, groups and goals anew: a third of a second a test, and
there are hundreds. Here the rows that a migrated database holds are kept aside once, and put back as they were.
"""

from typing import Any

from django.db import connection
from django.test import TransactionTestCase

KEPT = "kept_aside"


def keep_aside() -> None:
    """Remember the rows of the freshly migrated database, and have tests that commit end with just these."""
    if connection.vendor != "postgresql":
        return
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    with connection.cursor() as cursor:
        # A database that an earlier run left (--reuse-db) has one already.
        cursor.execute(f"DROP SCHEMA IF EXISTS {KEPT} CASCADE; CREATE SCHEMA {KEPT}")
        for table in tables:
            cursor.execute(f"CREATE TABLE {KEPT}.{table} AS TABLE {table}")
        filled = [table for table in tables if has_rows(cursor, table)]
    # References are checked at the end of the transaction: the order does not matter.
    statements = [f"DELETE FROM {table}" for table in tables]  # noqa: S608
    statements += [f"INSERT INTO {table} SELECT * FROM {KEPT}.{table}" for table in filled]  # noqa: S608
    script = f"BEGIN; {'; '.join(statements)}; COMMIT"

    def put_back(_: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(script)

    TransactionTestCase._fixture_teardown = put_back  # type: ignore[attr-defined]


def has_rows(cursor: Any, table: str) -> bool:
    cursor.execute(f"SELECT EXISTS (SELECT 1 FROM {KEPT}.{table})")  # noqa: S608
    return bool(cursor.fetchone()[0])


def wait_for_no_disk() -> None:
    """Have no commit wait for the disk, in whatever process: no test is about a machine that loses its power."""
    if connection.vendor == "postgresql":
        name = connection.ops.quote_name(connection.settings_dict["NAME"])
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        connection.close()
