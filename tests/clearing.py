"""Restore the rows of the migrated database after a test that commits, in one round trip.

Django truncates every table and makes permissions, groups and goals again, which takes a third of a second for each of
hundreds of tests. Here the rows of the migrated database are copied once, and copied back.
"""

from typing import Any

from django.db import connection
from django.test import TransactionTestCase

from tests.database import is_sqlite

COPY = "migrated_"


def save_migrated_rows() -> None:
    """Copy the rows of the newly migrated database, to which the database is reset after each test that commits."""
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    existing = set(connection.introspection.table_names())
    with connection.cursor() as cursor:
        # A copy of the migrated database already has these tables.
        for table in tables:
            if f"{COPY}{table}" not in existing:
                cursor.execute(f"CREATE TABLE {COPY}{table} AS SELECT * FROM {table}")  # noqa: S608
        filled = [table for table in tables if has_rows(cursor, table)]
    # Both databases check references at the end of the transaction: the order does not matter.
    statements = [f"DELETE FROM {table}" for table in tables if table not in filled]  # noqa: S608
    statements += [statement for table in filled for statement in replace_changed_rows(table)]
    script = f"BEGIN{' IMMEDIATE' if is_sqlite() else ''}; {'; '.join(statements)}; COMMIT"

    def restore_rows(_: Any = None) -> None:
        with connection.cursor() as cursor:
            if is_sqlite():
                cursor.executescript(script)
            else:
                cursor.execute(script)

    restore_rows()
    TransactionTestCase._fixture_teardown = restore_rows  # type: ignore[attr-defined]


def replace_changed_rows(table: str) -> list[str]:
    """Return the statements that replace the rows of a table that differ from those of the migrated database.

    Replacing all of the hundreds of rows would take most of the time, and each test would leave as many dead rows.
    """
    changed = f"SELECT id FROM (SELECT * FROM {table} EXCEPT SELECT * FROM {COPY}{table}) AS changed"  # noqa: S608
    return [
        f"DELETE FROM {table} WHERE id IN ({changed})",  # noqa: S608
        f"INSERT INTO {table} SELECT * FROM {COPY}{table} EXCEPT SELECT * FROM {table}",  # noqa: S608
    ]


def has_rows(cursor: Any, table: str) -> bool:
    cursor.execute(f"SELECT EXISTS (SELECT 1 FROM {COPY}{table})")  # noqa: S608
    return bool(cursor.fetchone()[0])


def disable_synchronous_commit() -> None:
    """Make commits of all processes return before they are on disk: no test depends on durability."""
    if not is_sqlite():
        name = connection.ops.quote_name(connection.settings_dict["NAME"])
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        connection.close()
