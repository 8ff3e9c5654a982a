"""A site that is restored from a backup (docs/operating.md, "Backup")."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from django.db import connection
from pytest_django import Settings

from actions.models import ActionEvent
from plans.models import ActionPlan
from tests.builders import action
from tests.database import database_url
from tests.documentation.blocks import read_text
from tests.end_to_end.processes.test_applier_processes import make_sleepy_plan
from tests.processes import start_command
from tests.waiting import PATIENCE, wait_for
from tests.watcher_site.notifications.receiver import receiving
from tests.watcher_site.notifications.relaying import notify, subscribe_to

pytestmark = [
    pytest.mark.slow,
    pytest.mark.postgresql,
    pytest.mark.django_db(transaction=True),
    pytest.mark.programs("pg_dump"),
]
ENVIRONMENT = {"WATCHER_POLL_INTERVAL": "0.1", "WATCHER_WEBHOOK_PRIVATE_ADDRESSES": "true"}
# A backup is older than the leases of its processes, and an interrupted action need not sleep again.
LATER = """
UPDATE watcher_site_service SET last_seen_up = last_seen_up - interval '1 hour';
UPDATE actions_action SET input_parameters = '{"duration": 0}' WHERE action_type = 'sleep';
"""


def run(*command: str, **environment: str) -> str:
    """Run a command to its end, and return its output."""
    process = start_command(*command, **ENVIRONMENT, **environment)
    output, errors = process.communicate(PATIENCE)
    assert process.returncode == 0, errors
    return str(output)


def run_shell(commands: str, url: str, file: Path) -> None:
    """Run documented commands with this database and this file instead of those of the example."""
    commands = commands.replace("postgres://watcher@db.example.org/watcher", url).replace("watcher.dump", str(file))
    subprocess.run(["sh", "-ec", commands], env=os.environ | server_variables(), check=True)


def server_variables() -> dict[str, str]:
    """Return the variables with which programs of PostgreSQL use the server of the tests."""
    server = urlsplit(database_url())
    values = {
        "PGHOST": server.hostname,
        "PGPORT": server.port,
        "PGUSER": server.username,
        "PGPASSWORD": server.password,
    }
    return {name: str(value) for name, value in values.items() if value}


def run_once(command: str, **environment: str) -> None:
    run(command, "--once", **environment)


class Backup:
    """A dump of the test database, and the database into which the dump is restored."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.name = f"{connection.settings_dict['NAME']}_restored"
        self.url = f"{database_url().rpartition('/')[0]}/{self.name}"

    def dump(self) -> None:
        run_shell(read_text("docs/operating.md", "## Backup", number=0).splitlines()[0], database_url(), self.file)

    def restore(self) -> None:
        self.drop()
        commands = read_text("docs/operating.md", "### Restoring a backup", number=0)
        run_shell(commands.replace("createdb watcher", f'createdb "{self.name}"'), self.url, self.file)
        self.write(LATER)

    def drop(self) -> None:
        self.execute(f'DROP DATABASE IF EXISTS "{self.name}" WITH (FORCE)')

    @staticmethod
    def execute(statement: str) -> None:
        with psycopg.connect(database_url(), autocommit=True) as own:
            own.execute(statement)

    def write(self, statement: str) -> None:
        with psycopg.connect(self.url) as restored:
            restored.execute(statement)

    def read(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url) as restored:
            return restored.execute(query, parameters).fetchall()


@pytest.fixture
def backup(tmp_path: Path) -> Iterator[Backup]:
    made = Backup(tmp_path / "watcher.dump")
    yield made
    made.drop()


@pytest.mark.parametrize(
    ("stop", "seconds", "attempts"),
    [
        # The second of three actions was running.
        pytest.param(signal.SIGKILL, 600, [1, 2, 1], id="killed"),
        # It was completed before the applier stopped.
        pytest.param(signal.SIGTERM, 1, [1, 1, 1], id="stopped"),
    ],
)
def test_restored_site_completes_its_plans_without_repeating_completed_actions(
    backup: Backup, stop: signal.Signals, seconds: int, attempts: list[int]
) -> None:
    plan: ActionPlan = make_sleepy_plan(seconds)
    applier = start_command("run_applier", **ENVIRONMENT)
    wait_for(plan.actions.filter(action_type="sleep", attempt=1).exists)
    applier.send_signal(stop)
    applier.wait(PATIENCE)
    first = action(plan, "a").pk
    before = ActionEvent.objects.filter(action=first).count()
    backup.dump()
    backup.restore()
    run_once("run_applier", DATABASE_URL=backup.url)
    assert backup.read("SELECT state FROM plans_actionplan") == [("SUCCEEDED",)]
    expected = [("SUCCEEDED", attempt) for attempt in attempts]
    assert backup.read("SELECT state, attempt FROM actions_action ORDER BY id") == expected
    assert backup.read("SELECT count(*) FROM actions_actionevent WHERE action_id = %s", first) == [(before,)]


def test_restored_site_continues_a_suspended_plan_after_it_is_resumed(backup: Backup) -> None:
    plan: ActionPlan = make_sleepy_plan(600)
    applier = start_command("run_applier", **ENVIRONMENT)
    wait_for(plan.actions.filter(action_type="sleep", attempt=1).exists)
    applier.kill()
    applier.wait(PATIENCE)
    backup.dump()
    backup.restore()
    assert run("plans", "suspend-restored", "--yes", DATABASE_URL=backup.url) == "1 action plan suspended\n"
    run_once("run_applier", DATABASE_URL=backup.url)
    # The interrupted action is suspended, and not recovered.
    states = "SELECT state, attempt FROM actions_action ORDER BY id"
    assert backup.read(states) == [("SUCCEEDED", 1), ("SUSPENDED", 1), ("PENDING", 0)]
    run("plans", "resume", str(plan.uuid), DATABASE_URL=backup.url)
    run_once("run_applier", DATABASE_URL=backup.url)
    assert backup.read("SELECT state, suspended_by FROM plans_actionplan") == [("SUCCEEDED", None)]
    assert backup.read(states) == [("SUCCEEDED", 1), ("SUCCEEDED", 2), ("SUCCEEDED", 1)]


def test_restored_site_sends_the_events_of_its_outbox_with_the_same_identifiers(
    backup: Backup, settings: Settings
) -> None:
    with receiving() as receiver:
        subscribe_to(receiver.url, event_types=["action.*"])
        notify(uuid4(), number=1)
        run_once("relay_notifications")
        notify(uuid4(), number=1)
        backup.dump()
        run_once("relay_notifications")
        backup.restore()
        run_once("relay_notifications", DATABASE_URL=backup.url)
    sent, waiting, again = [event["id"] for event in receiver.taken]
    assert sent != waiting == again


def test_backup_of_an_earlier_release_is_refused_until_it_is_migrated(backup: Backup) -> None:
    backup.dump()
    backup.restore()
    backup.write("DELETE FROM django_migrations WHERE app = 'plans' AND name >= '0011'")
    process = start_command("run_applier", "--once", **ENVIRONMENT, DATABASE_URL=backup.url)
    _, errors = process.communicate(PATIENCE)
    assert process.returncode == 2
    assert errors.startswith("CommandError: Migrations are not applied: plans.0011_")
