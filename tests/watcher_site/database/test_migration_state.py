"""Processes start only if all their migrations are applied; migrations of later releases are accepted."""

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from tests.migrated_database import newest_migration
from tests.watcher_site.site_process import free_port_number, run
from watcher_site.database.migration_state import read_migration_state, require_applied_migrations
from watcher_site.refusals import Conflict

GUNICORN = ("-m", "gunicorn", "--config", "python:watcher_site.gunicorn")
NOT_APPLIED = "Migrations are not applied: contenttypes.0001_initial and "


@pytest.mark.django_db
def test_fully_migrated_database_is_accepted() -> None:
    assert read_migration_state() == ([], [])
    require_applied_migrations()


@pytest.mark.django_db
@pytest.mark.parametrize("command", ["run_applier", "run_decision_engine", "relay_notifications"])
def test_service_does_not_start_while_a_migration_is_missing(command: str) -> None:
    app, name = newest_migration("plans")
    MigrationRecorder(connection).record_unapplied(app, name)
    with pytest.raises(CommandError, match=rf"^Migrations are not applied: {app}\.{name}\. Run the command migrate"):
        call_command(command, once=True)


@pytest.mark.django_db
def test_error_names_the_first_missing_migration_and_counts_the_others() -> None:
    for app in ("plans", "audits"):
        MigrationRecorder(connection).record_unapplied(*newest_migration(app))
    with pytest.raises(Conflict, match=r"^Migrations are not applied: \w+\.\d{4}_\w+ and 1 more\."):
        require_applied_migrations()


@pytest.mark.django_db
def test_migration_of_a_later_release_is_accepted(capfd: pytest.CaptureFixture[str]) -> None:
    MigrationRecorder(connection).record_applied("plans", "9999_later")
    require_applied_migrations()
    assert read_migration_state() == ([], ["plans.9999_later"])


@pytest.mark.django_db
def test_migration_of_a_removed_app_is_not_a_later_one() -> None:
    MigrationRecorder(connection).record_applied("former_app", "0001_initial")
    assert read_migration_state() == ([], [])


# Real processes, on a database without tables.


def test_applier_without_tables_exits_with_one_line(tmp_path: Path) -> None:
    ended = run("manage.py", "run_applier", DATABASE_URL=f"sqlite:///{tmp_path}/empty.sqlite3")
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"CommandError: {NOT_APPLIED}")
    assert ended.stderr.count("\n") == 1


def test_web_process_without_tables_exits_with_one_message(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/empty.sqlite3"
    ended = run(*GUNICORN, DATABASE_URL=database, PORT=str(free_port_number()), WATCHER_WEB_WORKERS="3")
    lines = ended.stderr.splitlines()
    assert ended.returncode == 2
    (refusal,) = [line for line in lines if not line.startswith("{")]
    assert refusal.startswith(NOT_APPLIED)
    assert json.loads(lines[-1])["event"] == "Reason: Migrations are not applied."
