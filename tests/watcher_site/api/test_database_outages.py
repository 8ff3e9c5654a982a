"""Requests while the database does not answer, and after a kept connection was lost."""

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.backends.db import SessionStore
from django.db import InterfaceError, OperationalError, connection
from django.http import HttpResponse
from django.test import Client
from pytest_django import Settings

from actions.models.exclusions import Exclusion
from tests.api import Caller, fault

TEXT = "The database does not answer. Try again later."
PATHS = ["/v1/goals", "/compute/v2.1/servers", "/orchestration/v1/project/stacks", "/metrics", "/console/login/"]


class Lost:
    """Fails a number of queries as a lost connection does."""

    def __init__(self, times: int, error: type[Exception] = OperationalError) -> None:
        self.left, self.error = times, error

    def __call__(self, execute: Callable[..., Any], *arguments: Any) -> Any:
        if self.left:
            self.left -= 1
            raise self.error("server closed the connection unexpectedly")
        return execute(*arguments)


@pytest.fixture
def dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat each connection of a test, which is within its transaction, as lost."""
    monkeypatch.setattr("watcher_site.api.errors.drop_lost_connection", lambda: True)


def require_unavailable(response: HttpResponse) -> None:
    assert (response.status_code, response["Retry-After"]) == (503, "5")


@pytest.mark.usefixtures("dropped")
@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_read_on_a_lost_connection_is_retried(api: Caller, error: type[Exception]) -> None:
    with connection.execute_wrapper(Lost(1, error)):
        assert api.get("/goals").status_code == 200


@pytest.mark.usefixtures("dropped")
def test_page_on_a_lost_connection_is_retried(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    with connection.execute_wrapper(Lost(1)):
        assert client.get("/console/plans/").status_code == 200


@pytest.mark.usefixtures("dropped")
def test_read_is_retried_once(api: Caller) -> None:
    with connection.execute_wrapper(Lost(2)):
        require_unavailable(api.get("/goals"))


def test_read_on_a_working_connection_is_not_retried(api: Caller) -> None:
    """A slow query, for example, fails with the same error on a connection that works."""
    with connection.execute_wrapper(Lost(1)):
        require_unavailable(api.get("/goals"))


@pytest.mark.usefixtures("dropped")
def test_write_is_not_retried(cloud_admin: User) -> None:
    api = Caller(cloud_admin, "1.13")
    with connection.execute_wrapper(Lost(1)):
        response = api.post("/exclusions", {"name": "freeze"})
    require_unavailable(response)
    assert fault(response) == TEXT
    assert not Exclusion.objects.exists()


@pytest.mark.parametrize("path", PATHS)
def test_each_part_of_the_site_is_503_during_a_database_outage(client: Client, cloud_admin: User, path: str) -> None:
    client.force_login(cloud_admin)
    with connection.execute_wrapper(Lost(100)):
        require_unavailable(client.get(path))


def test_mount_reports_an_outage_in_the_format_of_its_service(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    with connection.execute_wrapper(Lost(100)):
        response = client.get("/compute/v2.1/servers")
    assert json.loads(response.content) == {"serviceUnavailable": {"code": 503, "message": TEXT}}


def test_console_shows_an_outage_page_without_queries(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    with connection.execute_wrapper(Lost(100)):
        response = client.get("/console/")
    require_unavailable(response)
    assert "Database unavailable" in response.content.decode()


def test_outage_is_503_in_debug_mode(client: Client, cloud_admin: User, settings: Settings) -> None:
    settings.DEBUG = True
    client.force_login(cloud_admin)
    with connection.execute_wrapper(Lost(100)):
        require_unavailable(client.get("/v1/goals"))


def test_session_save_failure_is_503_and_not_reported_as_a_deleted_session(
    client: Client, cloud_admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save(self: SessionStore, must_create: bool = False) -> None:
        try:
            raise OperationalError("away")
        except OperationalError as problem:
            raise UpdateError from problem

    cloud_admin.set_password("long enough 4 this")
    cloud_admin.save()
    client.get("/console/login/")
    monkeypatch.setattr(SessionStore, "save", save)
    monkeypatch.setattr(SessionStore, "create", lambda self: None)
    with monkeypatch.context() as patched:
        patched.setattr(client, "raise_request_exception", False)
        response = client.post("/console/login/", {"username": "alice", "password": "long enough 4 this"})
    require_unavailable(response)


def test_process_is_live_during_a_database_outage(client: Client, db: None) -> None:
    with connection.execute_wrapper(Lost(100)):
        assert client.get("/healthz").status_code == 200


# Real connections.


def kill_connection() -> None:
    """Terminate this thread's connection in PostgreSQL, as in a failover."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    parameters = connection.get_connection_params()
    names = ("host", "port", "user", "password", "dbname")
    with psycopg.connect(**{name: parameters[name] for name in names if parameters.get(name)}) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_read_succeeds_on_a_connection_terminated_by_postgresql(api: Caller) -> None:
    kill_connection()
    assert api.get("/goals").status_code == 200


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_write_succeeds_on_a_connection_terminated_before_the_request(cloud_admin: User) -> None:
    api = Caller(cloud_admin, "1.13")
    kill_connection()
    assert api.post("/exclusions", {"name": "freeze"}).status_code == 201


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_write_succeeds_after_a_503(cloud_admin: User, monkeypatch: pytest.MonkeyPatch) -> None:
    api = Caller(cloud_admin, "1.13")
    with monkeypatch.context() as patched:
        # The connection ends once the request is under way.
        patched.setattr("watcher_site.api.errors.has_unread_data", lambda: False)
        kill_connection()
        require_unavailable(api.post("/exclusions", {"name": "freeze"}))
    assert api.post("/exclusions", {"name": "freeze"}).status_code == 201


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_site_is_ready_when_a_terminated_connection_can_be_replaced(client: Client) -> None:
    kill_connection()
    assert client.get("/readyz").status_code == 200
