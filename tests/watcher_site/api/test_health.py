"""The liveness and readiness probes, and their details for users with the permission."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone
from knox.models import AuthToken
from pytest_django import Settings

from cluster.models import Synchronization
from tests.api import Caller
from tests.broker import BROKER_URL, NO_BROKER_URL
from tests.migrated_database import newest_migration
from watcher_site.api.resources import health
from watcher_site.models import Service
from watcher_site.outbox.writing import listeners
from watcher_site.processes.broker import BrokerLost


def clear_checks() -> None:
    health.require_migrations.cache_clear()
    health.broker_watch.forget()


@pytest.fixture(autouse=True)
def clear_cached_checks() -> Iterator[None]:
    clear_checks()
    yield
    clear_checks()


class LostConnection:
    def cursor(self) -> None:
        raise OperationalError('connection to server at "10.1.2.3", port 5432 failed: user watcher')


def test_liveness_requires_no_database(client: Client) -> None:
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_site_is_ready_when_the_database_answers(client: Client, db: None) -> None:
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_site_is_not_ready_while_a_migration_is_missing(client: Client, db: None) -> None:
    MigrationRecorder(connection).record_unapplied(*newest_migration("plans"))
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["reason"]) == (503, "Migrations are not applied.")


def test_site_becomes_ready_when_the_last_migration_is_applied(client: Client, db: None) -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied(*newest_migration("plans"))
    client.get("/readyz")
    recorder.record_applied(*newest_migration("plans"))
    assert client.get("/readyz").status_code == 200


def test_lost_database_is_reported_without_its_address(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "connection", LostConnection())
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "unavailable", "reason": "The database does not answer."}


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probe_responses_are_not_cacheable(client: Client, db: None, path: str) -> None:
    assert "no-store" in client.get(path).headers["Cache-Control"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_require_no_https(client: Client, db: None, path: str, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    assert client.get(path).status_code == 200


@pytest.mark.rabbitmq
def test_site_is_ready_when_the_broker_answers(client: Client, db: None, settings: Settings) -> None:
    settings.EXECUTOR, settings.CELERY_BROKER_URL = "celery", BROKER_URL
    assert client.get("/readyz").status_code == 200


def test_lost_broker_is_reported_without_its_address(client: Client, db: None, settings: Settings) -> None:
    settings.EXECUTOR, settings.CELERY_BROKER_URL = "celery", NO_BROKER_URL
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "unavailable", "reason": "The broker does not answer: action plans wait."}


class Broker:
    """A broker check that succeeds or fails, and counts its calls."""

    def __init__(self) -> None:
        self.checks, self.is_lost = 0, False

    def require(self) -> None:
        self.checks += 1
        if self.is_lost:
            raise BrokerLost("no route to 10.1.2.3")


@pytest.mark.parametrize(("is_lost", "status"), [(False, 200), (True, 503)])
def test_broker_check_is_cached(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch, is_lost: bool, status: int
) -> None:
    broker = Broker()
    broker.is_lost = is_lost
    monkeypatch.setattr(health, "require_broker", broker.require)
    monkeypatch.setattr(health, "monotonic", lambda: 100)
    assert [client.get("/readyz").status_code for _ in range(3)] == [status] * 3
    assert broker.checks == 1


def test_lost_broker_is_checked_again_after_two_seconds(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, clock = Broker(), [100.0]
    broker.is_lost = True
    monkeypatch.setattr(health, "require_broker", broker.require)
    monkeypatch.setattr(health, "monotonic", lambda: clock[-1])
    assert client.get("/readyz").status_code == 503
    broker.is_lost = False
    clock.append(102.0)
    assert client.get("/readyz").status_code == 200


def test_broker_is_not_checked_when_it_is_not_required(client: Client, db: None, settings: Settings) -> None:
    settings.CELERY_BROKER_URL = NO_BROKER_URL
    assert client.get("/readyz").status_code == 200


def test_api_responds_during_a_broker_outage(client: Client, db: None, settings: Settings) -> None:
    settings.EXECUTOR, settings.CELERY_BROKER_URL = "celery", NO_BROKER_URL
    assert client.get("/healthz").status_code == 200
    assert client.get("/").status_code < 500


# The part of the response for users with the permission to see services.


def details(user: User | None, client: Client) -> dict[str, Any]:
    if user is not None:
        client.force_login(user)
    answer = client.get("/readyz")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def test_details_show_inactive_services_to_users_with_the_permission(client: Client, reader: User) -> None:
    Service.register(Service.APPLIER, "ctrl-1")
    silent = Service.register(Service.DECISION_ENGINE, "ctrl-1")
    Service.objects.filter(pk=silent.pk).update(last_seen_up=timezone.now() - timedelta(hours=1))
    found = details(reader, client)
    assert found["problems"] == ["No watcher-decision-engine is active: audits wait."]
    numbers = {one["name"]: (one["active"], one["failed"]) for one in found["services"]}
    assert numbers == {"watcher-applier": (1, 0), "watcher-decision-engine": (0, 1)}


def test_inactive_relay_is_a_problem_when_notifications_are_enabled(
    client: Client, cloud_admin: User, settings: Settings
) -> None:
    settings.NOTIFICATION_URL = "fake://"
    listeners.forget()
    found = details(cloud_admin, client)
    assert "No watcher-relay is active: notifications wait." in found["problems"]


def make_listener(host: str = "ctrl-1", **columns: Any) -> Service:
    found = Service.register(Service.LISTENER, host)
    found.report(**{"lag": 0, "handled": 0, "skipped": 0, "problem": None, **columns})
    return found


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"lag": 61}, "watcher-listener on ctrl-1 is 61 seconds behind the cloud."),
        ({"problem": "The broker does not answer."}, "watcher-listener on ctrl-1: The broker does not answer."),
    ],
)
def test_lagging_or_failing_listener_is_a_problem(
    client: Client, cloud_admin: User, columns: dict[str, Any], problem: str
) -> None:
    make_listener(**columns)
    assert problem in details(cloud_admin, client)["problems"]


def test_listener_that_keeps_up_is_no_problem(client: Client, cloud_admin: User, settings: Settings) -> None:
    settings.CLOUD_NOTIFICATION_URL = "rabbit://broker.example.org"
    make_listener(lag=59)
    assert not any("listener" in problem for problem in details(cloud_admin, client)["problems"])


def test_missing_listener_is_a_problem_when_the_cloud_has_a_broker(
    client: Client, cloud_admin: User, settings: Settings
) -> None:
    settings.CLOUD_NOTIFICATION_URL = "rabbit://broker.example.org"
    problem = "No watcher-listener is active: changes in the cloud are seen at the next reading."
    assert problem in details(cloud_admin, client)["problems"]


def test_inactive_listener_is_not_reported_as_lagging(client: Client, cloud_admin: User) -> None:
    gone = make_listener(lag=600)
    Service.objects.filter(pk=gone.pk).update(last_seen_up=timezone.now() - timedelta(hours=1))
    assert not any("behind" in problem for problem in details(cloud_admin, client)["problems"])


def test_metrics_sum_the_listeners_of_a_host(api: Caller) -> None:
    make_listener(lag=2.5, handled=10, skipped=1)
    make_listener(lag=1, handled=5)
    lines = api.client.get("/metrics").content.decode().splitlines()
    assert 'watcher_listener_lag_seconds{host="ctrl-1"} 2.5' in lines
    assert 'watcher_listener_messages{host="ctrl-1",outcome="handled"} 15.0' in lines
    assert 'watcher_listener_messages{host="ctrl-1",outcome="skipped"} 1.0' in lines


def test_details_show_the_status_of_each_component(client: Client, reader: User, settings: Settings) -> None:
    Service.register(Service.APPLIER, "ctrl-1")
    settings.NOTIFICATION_URL = "fake://"
    components = details(reader, client)["components"]
    assert components["database"] == {"status": "ok"}
    assert components["watcher-applier"] == {"status": "ok"}
    assert components["watcher-decision-engine"]["status"] == "failed"
    assert components["watcher-decision-engine"]["reason"] == "No watcher-decision-engine is active: audits wait."
    assert components["notification-broker"] == {"status": "ok"}
    assert "cloud" not in components


@pytest.mark.parametrize(
    ("columns", "component"),
    [
        ({}, {"status": "failed", "reason": "The cloud was not read yet."}),
        ({"problem": "Nova does not answer"}, {"status": "failed", "reason": "Nova does not answer"}),
        ({"succeeded_at": datetime(2030, 1, 1, tzinfo=UTC)}, {"status": "ok"}),
    ],
    ids=["never", "failed", "succeeded"],
)
def test_mirrored_cloud_is_a_component(
    client: Client, reader: User, monkeypatch: pytest.MonkeyPatch, columns: dict[str, Any], component: dict[str, str]
) -> None:
    monkeypatch.setattr("cluster.health.cloud", lambda: SimpleNamespace(is_mirrored=True))
    Synchronization.objects.create(pk=Synchronization.ONLY, **columns)
    assert details(reader, client)["components"]["cloud"] == component


def test_lost_broker_does_not_hide_the_other_components(client: Client, reader: User, settings: Settings) -> None:
    settings.EXECUTOR, settings.CELERY_BROKER_URL = "celery", NO_BROKER_URL
    client.force_login(reader)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["components"]["broker"]["status"] == "failed"
    assert answer.json()["components"]["database"] == {"status": "ok"}


def test_unready_site_sends_retry_after(client: Client, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "connection", LostConnection())
    assert client.get("/readyz")["Retry-After"] == "5"


@pytest.mark.parametrize("header", ["X-Auth-Token: {}", "Authorization: Bearer {}", "Authorization: Token {}"])
def test_site_token_is_accepted_in_each_header(client: Client, reader: User, header: str) -> None:
    _, token = AuthToken.objects.create(reader)
    name, value = header.format(token).split(": ")
    assert "components" in client.get("/readyz", headers={name: value}).json()


def test_details_are_hidden_without_the_permission(client: Client, stranger: User) -> None:
    assert details(None, client) == {"status": "ok"}
    assert client.get("/readyz", headers={"Authorization": "Token wrong"}).json() == {"status": "ok"}
    assert details(stranger, client) == {"status": "ok"}
