"""`manage.py` answers what its caller can mend with one line, for Django's own commands too."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

import django
import pytest

from tests.database import database_url
from tests.processes import ROOT
from tests.watcher_site.site_process import SOUND, run


def test_an_unknown_command_is_one_line_and_status_2() -> None:
    ended = run("manage.py", "nosuchcommand")
    assert (ended.returncode, ended.stderr) == (
        2,
        "Unknown command: 'nosuchcommand'. Type 'manage.py help' for usage.\n",
    )


def test_a_python_without_django_is_one_line_and_status_2() -> None:
    command = [sys.executable, "-S", "manage.py", "plans", "list"]
    ended = subprocess.run(command, cwd=ROOT, env={}, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ".venv/bin/python manage.py" in ended.stderr


def test_a_command_that_is_nearly_right_is_named() -> None:
    assert "Did you mean prepare?" in run("manage.py", "prepar").stderr


def test_a_version_that_is_not_served_is_one_line_and_status_2() -> None:
    ended = run("manage.py", "spectacular", "--api-version", "9.9")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "It must be one of 1.0, 1.1" in ended.stderr


@pytest.mark.parametrize("command", ["showmigrations", "clearsessions", "prepare"])
def test_a_database_that_does_not_answer_is_one_line_and_status_1(command: str) -> None:
    ended = run("manage.py", command, DATABASE_URL="postgres://nobody@127.0.0.1:1/watcher")
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert "database: connection failed" in ended.stderr


@pytest.mark.postgresql
def test_a_user_that_the_database_does_not_know_is_one_line_and_status_1() -> None:
    url = urlsplit(database_url())._replace(netloc=f"nosuchuser:nosuchpassword@{urlsplit(database_url()).hostname}")
    ended = run("manage.py", "plans", "list", DATABASE_URL=url.geturl())
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert ended.stderr.startswith("CommandError: database: connection failed")


def test_the_version_is_that_of_the_site() -> None:
    ended = run("manage.py", "--version")
    assert ended.stdout == f"Watcher Site {metadata.version('watcher-site')}, Django {django.get_version()}\n"


def test_where_it_failed_is_shown_on_demand() -> None:
    ended = run("manage.py", "showmigrations", "--traceback", DATABASE_URL="postgres://nobody@127.0.0.1:1/watcher")
    assert "Traceback" in ended.stderr


def test_an_interrupted_command_says_nothing(tmp_path: Path) -> None:
    """Ctrl-C was pressed at its prompt."""
    code = "import builtins; from watcher_site.processes import command_line\n"
    code += "def interrupt(*_): raise KeyboardInterrupt\n"
    code += "command_line.CommandLine.execute = interrupt; import sys; sys.exit(command_line.run_command(['']))"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=SOUND, capture_output=True)
    assert (ended.returncode, ended.stderr) == (130, b"")


def test_a_reader_that_ends_early_ends_the_command_silently() -> None:
    code = "import sys; from watcher_site.processes import command_line; sys.exit(command_line.run_command(sys.argv))"
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-c", code, "help"], cwd=ROOT, env=SOUND, stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_output_to_a_full_disk_is_one_line_and_status_1() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "manage.py", "help"], cwd=ROOT, env=SOUND, stdout=full, stderr=subprocess.PIPE
        )
    assert (ended.returncode, ended.stderr) == (1, b"Output cannot be written: No space left on device\n")
