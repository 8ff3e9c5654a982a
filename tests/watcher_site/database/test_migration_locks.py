"""Migrations that wait for locks of processes that use the tables."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.models.signals import pre_migrate

from tests.database import database_url
from watcher_site.database.migration_locks import lock_waits_of, until_locked
from watcher_site.models import HistoryEntry

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
TABLE = HistoryEntry._meta.db_table


def lock_timeout() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        return str(cursor.fetchone()[0])


def alter_table() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {TABLE} ADD COLUMN IF NOT EXISTS deed text")


@pytest.fixture
def transaction() -> Iterator["psycopg.Connection[Any]"]:
    """Read the table in a transaction that stays open."""
    with psycopg.connect(database_url()) as other:
        other.execute(f"LOCK TABLE {TABLE} IN ACCESS SHARE MODE")
        yield other


def test_migration_is_retried_until_the_table_lock_is_released(
    transaction: "psycopg.Connection[Any]",
) -> None:
    attempts = 0

    def attempt() -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 2:
            transaction.rollback()
        alter_table()

    with lock_waits_of(connection, 0.05):
        until_locked()(attempt)
    assert attempts == 2


def test_other_errors_are_not_retried() -> None:
    attempts = []

    def attempt() -> None:
        attempts.append(1)
        raise OperationalError("the connection is closed")

    with pytest.raises(OperationalError):
        until_locked()(attempt)
    assert attempts == [1]


def test_migrate_limits_lock_waits_only_of_its_own_statements() -> None:
    found = []

    def remember(**_: Any) -> None:
        found.append(lock_timeout())

    pre_migrate.connect(remember)
    try:
        call_command("migrate", verbosity=0)
    finally:
        pre_migrate.disconnect(remember)
    assert set(found) == {"500ms"}
    assert lock_timeout() == "0"


def test_nested_lock_timeout_is_restored() -> None:
    with lock_waits_of(connection, 0.5):
        with lock_waits_of(connection, 0):
            assert lock_timeout() == "0"
        assert lock_timeout() == "500ms"
