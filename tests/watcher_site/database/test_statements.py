"""Composed statements, on whatever connection there is."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.backends.sqlite3.base import DatabaseWrapper
from django.test.utils import CaptureQueriesContext

from watcher_site.backends import person_by_key
from watcher_site.database import writes


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_statement_runs_on_the_connection_that_came_after_a_closed_one(stranger: User) -> None:
    assert person_by_key.rows(key=stranger.pk) == [stranger]
    connection.close()
    assert person_by_key.rows(key=stranger.pk) == [stranger]


@pytest.mark.django_db
def test_a_statement_is_counted_while_queries_are_captured(stranger: User) -> None:
    person_by_key.rows(key=stranger.pk)
    with CaptureQueriesContext(connection) as queries:
        person_by_key.rows(key=stranger.pk)
    assert len(queries) == 1


def test_a_time_that_guards_a_row_is_compared_with_what_the_database_holds() -> None:
    sqlite = SimpleNamespace(ops=DatabaseWrapper.ops_class(connection))
    change = writes.Change(User(pk=1), (), {"last_login": datetime(2026, 3, 1, 22, tzinfo=UTC)})
    assert change.compose(sqlite)[1] == [1, "2026-03-01 22:00:00"]
