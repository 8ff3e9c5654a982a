"""Real ``prepare`` processes: several concurrent processes, and the printed command."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from django.core.files import locks
from django.db import connection
from psycopg.sql import SQL, Identifier

from tests.processes import ROOT, Process
from tests.settings import POSTGRESQL_URL
from tests.waiting import PATIENCE, wait_for
from tests.watcher_site.site_process import VALID_ENVIRONMENT, free_port_number
from watcher_site.processes.preparation import ADVISORY_LOCK, WAITING

pytestmark = pytest.mark.slow


# All migrations except the last, which `prepare` applies.
MIGRATE = """
import django
django.setup()
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
executor = MigrationExecutor(connection)
targets = executor.loader.graph.leaf_nodes()
executor.migrate(targets, plan=executor.migration_plan(targets)[:-1])
"""
# A site with its files in a folder of the test.
PREPARE = """
import sys
from pathlib import Path
from watcher_site import settings
from watcher_site.processes import command_line
settings.DATA_DIR, settings.PORT = Path(sys.argv[1]), int(sys.argv[2])
sys.stdout.reconfigure(line_buffering=True)
sys.exit(command_line.run_command(['manage.py', 'prepare']))
"""


def environment(database: str) -> dict[str, str]:
    return {**VALID_ENVIRONMENT, "DATABASE_URL": database, "DJANGO_SETTINGS_MODULE": "watcher_site.settings"}


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite database with all migrations except the last."""
    path = tmp_path_factory.mktemp("migrated") / "watcher.sqlite3"
    process = Process("-c", MIGRATE, env=environment(f"sqlite:///{path}"))
    assert process.wait(PATIENCE) == 0, process.communicate()
    return path


@pytest.fixture
def sqlite_url(migrated: Path, tmp_path: Path) -> str:
    return f"sqlite:///{shutil.copy(migrated, tmp_path)}"


@pytest.fixture
def postgresql_url(django_db_setup: None) -> Iterator[str]:
    """The URL of a copy of the test database."""
    name = f"prepare_{uuid4().hex}"
    connection.close()  # A database with connections cannot be copied.
    with psycopg.connect(POSTGRESQL_URL, autocommit=True) as server:
        original = connection.settings_dict["NAME"]
        # Of processes that an earlier test killed.
        server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [original])
        names = Identifier(name), Identifier(original)
        server.execute(SQL("CREATE DATABASE {} TEMPLATE {}").format(*names))
        yield POSTGRESQL_URL.rpartition("/")[0] + f"/{name}"
        server.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


@contextmanager
def prepare_lock(database: str, folder: Path) -> Iterator[None]:
    """Hold the lock of a process that prepares a site."""
    if database.startswith("sqlite"):
        with (folder / "prepare.lock").open("a") as file:
            locks.lock(file, locks.LOCK_EX)
            yield
    else:
        with psycopg.connect(database, autocommit=True) as holder:
            holder.execute("SELECT pg_advisory_lock(%s)", [ADVISORY_LOCK])
            yield


def start_prepare(folder: Path, database: str, output: Path) -> Process:
    with output.open("w") as file:
        arguments = ("-c", PREPARE, str(folder), str(free_port_number()))
        return Process(*arguments, env=environment(database), stdout=file.fileno(), stderr=file.fileno())


def is_over(process: Process) -> bool:
    return process.poll() is not None


def texts(files: list[Path]) -> list[str]:
    return [file.read_text() for file in files]


@pytest.mark.parametrize("database", ["sqlite_url", pytest.param("postgresql_url", marks=pytest.mark.postgresql)])
def test_concurrent_prepare_processes_wait_for_each_other(
    tmp_path: Path, request: pytest.FixtureRequest, database: str
) -> None:
    url = request.getfixturevalue(database)
    outputs = [tmp_path / f"output-{number}" for number in range(3)]
    with prepare_lock(url, tmp_path):
        started = [start_prepare(tmp_path, url, output) for output in outputs]
        wait_for(lambda: all(WAITING in text for text in texts(outputs)) or any(map(is_over, started)))
    statuses = [process.wait(PATIENCE) for process in started]
    printed = texts(outputs)
    assert statuses == [0, 0, 0], printed
    assert all(WAITING in text for text in printed)
    assert sum("shown this once" in text for text in printed) == 1
    assert sum("is RECOMMENDED" in text for text in printed) == 1


def test_printed_command_changes_the_password(tmp_path: Path, sqlite_url: str) -> None:
    command = [sys.executable, "-c", PREPARE, str(tmp_path), str(free_port_number())]
    prepared = subprocess.run(command, cwd=ROOT, env=environment(sqlite_url), stdout=subprocess.PIPE, text=True)
    (line,) = [line for line in prepared.stdout.splitlines() if "changepassword" in line]
    changed = subprocess.run(
        shlex.split(line.split("new password: ")[1]),
        cwd=ROOT,
        env={**VALID_ENVIRONMENT, "DATABASE_URL": sqlite_url},
        input="a horse, a battery\n" * 2,
        capture_output=True,
        text=True,
        start_new_session=True,  # Without a terminal the command reads the password from its input.
    )
    assert (changed.returncode, changed.stdout.splitlines()[-1]) == (
        0,
        "Password changed successfully for user 'admin'",
    )
