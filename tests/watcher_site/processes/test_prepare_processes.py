"""`prepare` in processes of its own: several at once, and what a person does after it."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from tests.processes import ROOT
from tests.settings import POSTGRESQL_URL
from tests.waiting import PATIENCE
from tests.watcher_site.site_process import SOUND, free_port_number

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'watcher.sqlite3'}"
        return
    name = f"prepare_{uuid4().hex}"
    with psycopg.connect(POSTGRESQL_URL, autocommit=True) as connection:
        connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
        yield POSTGRESQL_URL.rpartition("/")[0] + f"/{name}"
        connection.execute(SQL("DROP DATABASE {}").format(Identifier(name)))


def prepare(folder: Path, database: str) -> subprocess.Popen[str]:
    """Begin to prepare a site that has its files in a folder of the test's."""
    code = (
        "import sys; from pathlib import Path; from watcher_site import settings\n"
        "from watcher_site.processes import command_line\n"
        f"settings.DATA_DIR, settings.PORT = Path({str(folder)!r}), {free_port_number()}\n"
        f"sys.exit(command_line.run(['manage.py', 'prepare']))"
    )
    environment = {**SOUND, "DATABASE_URL": database, "DJANGO_SETTINGS_MODULE": "watcher_site.settings"}
    command = [sys.executable, "-c", code]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_starts_at_the_same_time_wait_for_each_other(tmp_path: Path, empty_database: str) -> None:
    """Without the lock, one fails in the middle of another's migrations."""
    started = [prepare(tmp_path, empty_database) for _ in range(3)]
    printed = [process.communicate(timeout=PATIENCE)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], printed
    assert sum("shown this once" in text for text in printed) == 1
    assert sum("is recommended" in text for text in printed) == 1
    assert any("waiting for it" in text for text in printed)


def test_the_command_that_is_printed_changes_the_password(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'watcher.sqlite3'}"
    printed = prepare(tmp_path, database).communicate(timeout=PATIENCE)[0]
    (line,) = [line for line in printed.splitlines() if "changepassword" in line]
    changed = subprocess.run(
        shlex.split(line.split("new password: ")[1]),
        cwd=ROOT,
        env={**SOUND, "DATABASE_URL": database},
        input="a horse, a battery\n" * 2,
        capture_output=True,
        text=True,
        start_new_session=True,  # Without a terminal it reads what it asks for.
    )
    assert (changed.returncode, changed.stdout.splitlines()[-1]) == (
        0,
        "Password changed successfully for user 'admin'",
    )
