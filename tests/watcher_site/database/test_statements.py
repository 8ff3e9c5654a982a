"""Composed statements on new and closed connections, and their preparation."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.backends.sqlite3.base import DatabaseWrapper
from django.test.utils import CaptureQueriesContext

from tests.builders import make_plan
from watcher_site.backends import account_by_key
from watcher_site.database import writes


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_statement_runs_on_a_new_connection_after_a_closed_one(stranger: User) -> None:
    assert account_by_key.rows(key=stranger.pk) == [stranger]
    connection.close()
    assert account_by_key.rows(key=stranger.pk) == [stranger]


@pytest.mark.django_db
def test_statement_is_counted_among_captured_queries(stranger: User) -> None:
    account_by_key.rows(key=stranger.pk)
    with CaptureQueriesContext(connection) as queries:
        account_by_key.rows(key=stranger.pk)
    assert len(queries) == 1


def test_guarded_time_is_compared_in_the_format_of_the_database() -> None:
    sqlite = SimpleNamespace(ops=DatabaseWrapper.ops_class(connection))
    change = writes.Change(User(pk=1), (), {"last_login": datetime(2026, 3, 1, 22, tzinfo=UTC)})
    assert change.compose(sqlite)[1] == [1, "2026-03-01 22:00:00"]


def count_prepared(text: str) -> int:
    """Return the number of prepared statements of the connection that contain a text."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s", [f"%{text}%"])
        return int(cursor.fetchone()[0])


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_composed_query_is_prepared(stranger: User) -> None:
    connection.close()
    account_by_key.rows(key=stranger.pk)
    assert count_prepared("auth_user") == 1


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_repeated_orm_query_is_not_prepared() -> None:
    connection.close()
    for name in map(str, range(20)):
        list(User.objects.filter(username=name))
    assert count_prepared("auth_user") == 0


@pytest.mark.postgresql
@pytest.mark.django_db
def test_guarded_row_is_found_by_its_key() -> None:
    row = make_plan({"a": []}).actions.get()
    change = writes.Change(row, ("updated_at",), {"state": row.state, "owner_id": None, "deleted_at": None})
    sql, values = change.compose(connection)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {sql}", values)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Index Scan using actions_action_pkey" in plan


@pytest.mark.parametrize(("guard", "is_written"), [(None, True), ("Rosa", False)])
@pytest.mark.django_db
def test_guard_without_a_value_matches_only_null(guard: str | None, is_written: bool) -> None:
    row = make_plan({"a": []}).actions.get()
    change = writes.Change(row, ("updated_at",), {"state": row.state, "skipped_by": guard})
    assert change.write(connection) is is_written
