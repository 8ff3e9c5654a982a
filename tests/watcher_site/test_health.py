"""Probes learn whether the site lives and can serve, and nothing else."""

from collections.abc import Iterator

import pytest
from django.db import OperationalError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from pytest_django import Settings

from watcher_site import health


@pytest.fixture(autouse=True)
def forget_migrations() -> Iterator[None]:
    health.require_migrations.cache_clear()
    yield
    health.require_migrations.cache_clear()


class LostConnection:
    def cursor(self) -> None:
        raise OperationalError('connection to server at "10.1.2.3", port 5432 failed: user watcher')


def newest_migration() -> tuple[str, str]:
    (newest,) = MigrationLoader(connection).graph.leaf_nodes("plans")
    return newest


def test_a_process_that_lives_says_so_without_a_database(client: Client) -> None:
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_a_site_whose_database_answers_is_ready(client: Client, db: None) -> None:
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_a_site_is_not_ready_while_a_migration_is_missing(client: Client, db: None) -> None:
    MigrationRecorder(connection).record_unapplied(*newest_migration())
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["reason"]) == (503, "Migrations are not applied.")


def test_a_site_becomes_ready_when_the_last_migration_is_applied(client: Client, db: None) -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied(*newest_migration())
    client.get("/readyz")
    recorder.record_applied(*newest_migration())
    assert client.get("/readyz").status_code == 200


def test_a_lost_database_is_reported_without_its_address(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "connection", LostConnection())
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "unavailable", "reason": "The database does not answer."}


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_no_probe_is_answered_from_a_cache(client: Client, db: None, path: str) -> None:
    assert "no-store" in client.get(path).headers["Cache-Control"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_need_no_https(client: Client, db: None, path: str, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    assert client.get(path).status_code == 200
