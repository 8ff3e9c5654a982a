"""`manage.py` reports errors of its caller in one line, for Django's own commands too."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

import django
import psycopg
import pytest

from tests.database import database_url
from tests.processes import ROOT
from tests.watcher_site.site_process import VALID_ENVIRONMENT, free_port_number, run


def test_unknown_command_is_one_line_with_status_2() -> None:
    ended = run("manage.py", "nosuchcommand")
    assert (ended.returncode, ended.stderr) == (
        2,
        "Unknown command: 'nosuchcommand'. Type 'manage.py help' for usage.\n",
    )


def test_missing_django_is_one_line_with_status_2() -> None:
    command = [sys.executable, "-S", "manage.py", "plans", "list"]
    ended = subprocess.run(command, cwd=ROOT, env={}, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ".venv/bin/python manage.py" in ended.stderr


def test_similar_command_is_suggested() -> None:
    assert "Did you mean prepare?" in run("manage.py", "prepar").stderr


def test_unsupported_api_version_is_one_line_with_status_2() -> None:
    ended = run("manage.py", "spectacular", "--api-version", "9.9")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "It must be one of 1.0, 1.1" in ended.stderr


@pytest.mark.parametrize("command", ["showmigrations", "clearsessions", "prepare"])
def test_unavailable_database_is_one_line_with_status_1(command: str) -> None:
    ended = run("manage.py", command, DATABASE_URL="postgres://nobody@127.0.0.1:1/watcher")
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert "database: connection failed" in ended.stderr


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Path:
    """A file of SQLite with several pages."""
    path = tmp_path / "watcher.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        for number in range(20):
            database.execute(f"CREATE TABLE table_{number} (text TEXT)")
    return path


@pytest.mark.parametrize("command", [["plans", "list"], ["migrate"], ["prepare"], ["run_applier"]])
def test_damaged_sqlite_file_is_one_line_with_status_2(sqlite_file: Path, command: list[str]) -> None:
    valid = sqlite_file.read_bytes()
    sqlite_file.write_bytes(valid[:100] + b"garbage!" * (len(valid) // 8))
    ended = run("manage.py", *command, DATABASE_URL=f"sqlite:///{sqlite_file}", PORT=str(free_port_number()))
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert f"DATABASE_URL: the SQLite database {sqlite_file} is damaged" in ended.stderr


@pytest.mark.parametrize("size", [50, 100, 5000])
def test_truncated_sqlite_file_is_one_line_with_status_2(sqlite_file: Path, size: int) -> None:
    os.truncate(sqlite_file, size)
    ended = run("manage.py", "plans", "list", DATABASE_URL=f"sqlite:///{sqlite_file}")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "is damaged" in ended.stderr


def test_web_process_with_a_damaged_sqlite_file_exits_with_one_message(sqlite_file: Path) -> None:
    os.truncate(sqlite_file, 100)
    gunicorn = ("-m", "gunicorn", "--config", "python:watcher_site.gunicorn")
    ended = run(*gunicorn, DATABASE_URL=f"sqlite:///{sqlite_file}", PORT=str(free_port_number()))
    (line,) = [line for line in ended.stderr.splitlines() if not line.startswith("{")]
    assert (ended.returncode, line.startswith("DATABASE_URL: ")) == (2, True)


@pytest.mark.parametrize("command", [["plans", "list"], ["plans", "suspend-restored"], ["purge", "--dry-run"]])
def test_missing_tables_of_sqlite_are_reported_as_unapplied_migrations(tmp_path: Path, command: list[str]) -> None:
    ended = run("manage.py", *command, DATABASE_URL=f"sqlite:///{tmp_path}/empty.sqlite3")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith("CommandError: Migrations are not applied: ")


@pytest.mark.postgresql
def test_missing_tables_of_postgresql_are_reported_as_unapplied_migrations() -> None:
    url = urlsplit(database_url())
    with psycopg.connect(database_url(), autocommit=True) as own:
        own.execute("DROP DATABASE IF EXISTS without_tables WITH (FORCE)")
        own.execute("CREATE DATABASE without_tables")
        ended = run("manage.py", "plans", "list", DATABASE_URL=url._replace(path="/without_tables").geturl())
        own.execute("DROP DATABASE without_tables WITH (FORCE)")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith("CommandError: Migrations are not applied: ")


@pytest.mark.postgresql
def test_unknown_database_user_is_one_line_with_status_1() -> None:
    url = urlsplit(database_url())._replace(netloc=f"nosuchuser:nosuchpassword@{urlsplit(database_url()).hostname}")
    ended = run("manage.py", "plans", "list", DATABASE_URL=url.geturl())
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert ended.stderr.startswith("CommandError: database: connection failed")


@pytest.mark.parametrize("command", [["plans", "list"], ["run_applier"], ["showmigrations"], ["prepare"], ["migrate"]])
def test_failed_check_of_the_configuration_is_one_line_with_status_2(command: list[str]) -> None:
    ended = run("manage.py", *command, WATCHER_CLOUD="nope")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "WATCHER_CLOUD: nope cannot be loaded: nope doesn't look like a module path\n"


def test_each_failed_check_of_the_configuration_is_one_line() -> None:
    ended = run("manage.py", "plans", "list", WATCHER_CLOUD="nope", WATCHER_DATASOURCE="nope")
    assert ended.returncode == 2
    assert {line.partition(":")[0] for line in ended.stderr.splitlines()} == {"WATCHER_CLOUD", "WATCHER_DATASOURCE"}


def test_check_command_prints_the_summary_of_django() -> None:
    ended = run("manage.py", "check", WATCHER_CLOUD="nope")
    assert (ended.returncode, ended.stderr.startswith("SystemCheckError: ")) == (1, True)
    assert "System check identified 1 issue" in ended.stderr


def test_version_option_prints_the_versions_of_the_site_and_django() -> None:
    ended = run("manage.py", "--version")
    assert ended.stdout == f"Watcher Site {metadata.version('watcher-site')}, Django {django.get_version()}\n"


def test_traceback_is_shown_on_request() -> None:
    ended = run("manage.py", "showmigrations", "--traceback", DATABASE_URL="postgres://nobody@127.0.0.1:1/watcher")
    assert "Traceback" in ended.stderr


def test_interrupted_command_exits_silently_with_status_130(tmp_path: Path) -> None:
    """As if Ctrl-C was pressed at its prompt."""
    code = "import builtins; from watcher_site.processes import command_line\n"
    code += "def interrupt(*_): raise KeyboardInterrupt\n"
    code += "command_line.CommandLine.execute = interrupt; import sys; sys.exit(command_line.run_command(['']))"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=VALID_ENVIRONMENT, capture_output=True)
    assert (ended.returncode, ended.stderr) == (130, b"")


def test_closed_output_pipe_exits_silently_with_status_141() -> None:
    code = "import sys; from watcher_site.processes import command_line; sys.exit(command_line.run_command(sys.argv))"
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-c", code, "help"], cwd=ROOT, env=VALID_ENVIRONMENT, stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_full_disk_is_one_line_with_status_1() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "manage.py", "help"], cwd=ROOT, env=VALID_ENVIRONMENT, stdout=full, stderr=subprocess.PIPE
        )
    assert (ended.returncode, ended.stderr) == (1, b"Output cannot be written: No space left on device\n")
