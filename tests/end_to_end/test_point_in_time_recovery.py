"""A site whose database server is restored to a moment in the past (docs/operating.md, "Backup")."""

import os
import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, LiteralString

import psycopg
import pytest

from tests.builders import make_plan
from tests.database import database_url
from tests.documentation.blocks import read_text
from tests.processes import start_command
from tests.waiting import PATIENCE, wait_for

INSTALLED = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
ARCHIVE = read_text("docs/operating.md", "## Backup", language="ini", number=0)
BASE_BACKUP = read_text("docs/operating.md", "## Backup", number=1)
RECOVERY = read_text("docs/operating.md", "### Restoring a backup", language="ini")
# PostgreSQL refuses to run as root.
USER = "postgres" if os.geteuid() == 0 else None

pytestmark = [
    pytest.mark.slow,
    pytest.mark.postgresql,
    pytest.mark.django_db(transaction=True),
    pytest.mark.programs("pg_dump"),
    pytest.mark.skipif(not INSTALLED, reason="needs a PostgreSQL server of its own"),
]


class OwnServer:
    """A PostgreSQL server that archives its write-ahead log, with the database of the site."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data, self.archive = folder, folder / "data", folder / "wal"
        self.archive.mkdir()
        if USER:
            shutil.chown(folder, USER)
            shutil.chown(self.archive, USER)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"postgres://postgres@127.0.0.1:{self.port}"
        self.url = f"{self.address}/watcher"
        self.process: subprocess.Popen[bytes] | None = None

    def run(self, program: str, *arguments: str) -> None:
        command = [INSTALLED[-1].with_name(program), *arguments]
        subprocess.run(command, check=True, user=USER, cwd=self.folder, stdout=subprocess.DEVNULL)

    def start(self) -> None:
        command = [INSTALLED[-1].with_name("postgres"), "-D", self.data, "-p", str(self.port), "-k", self.folder]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, user=USER, cwd=self.folder, stderr=log)
        wait_for(self.is_available)

    def is_available(self) -> bool:
        """Return whether the server accepts writes, which it does not before the end of a recovery."""
        try:
            with psycopg.connect(f"{self.address}/postgres", connect_timeout=5) as own:
                return own.execute("SELECT pg_is_in_recovery()").fetchone() == (False,)
        except psycopg.OperationalError:
            return False

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(PATIENCE)

    def configure(self, settings: str) -> None:
        """Add settings, with the folder of this server instead of the documented one."""
        with (self.data / "postgresql.auto.conf").open("a") as configuration:
            configuration.write(settings.replace("/backup/wal", str(self.archive)))

    def execute(self, statement: LiteralString, *parameters: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as own:
            cursor = own.execute(statement, parameters)
            return cursor.fetchall() if cursor.description else []

    def archive_log(self) -> None:
        """Archive the write-ahead log up to the last commit."""
        [(name,)] = self.execute("SELECT pg_walfile_name(pg_switch_wal())")
        wait_for((self.archive / name).exists)

    def restore(self, base: Path, moment: datetime) -> None:
        """Replace the data by the base backup, and start the server with the state of a moment."""
        self.stop()
        shutil.rmtree(self.data)
        base.rename(self.data)
        self.configure(RECOVERY.replace("2026-11-26 14:05:00+00", moment.isoformat()))
        (self.data / "recovery.signal").touch()
        if USER:
            shutil.chown(self.data / "recovery.signal", USER)
        self.start()


@pytest.fixture
def server() -> Iterator[OwnServer]:
    # The folders of pytest are not accessible to other users.
    folder = Path(mkdtemp(prefix="watcher-"))
    own = OwnServer(folder)
    own.run("initdb", "--pgdata", str(own.data), "--username=postgres", "--auth=trust", "--no-sync")
    own.configure(ARCHIVE)
    own.configure("fsync = off\nlisten_addresses = '127.0.0.1'\nshared_buffers = 32MB\n")
    try:
        own.start()
        yield own
    finally:
        own.stop()
        shutil.rmtree(folder)


def copy_database(server: OwnServer) -> None:
    with psycopg.connect(f"{server.address}/postgres", autocommit=True) as own:
        own.execute("CREATE DATABASE watcher")
    dump = subprocess.run(["pg_dump", "--format=custom", database_url()], check=True, stdout=subprocess.PIPE)
    command = ["pg_restore", "--no-owner", "--exit-on-error", f"--dbname={server.url}"]
    subprocess.run(command, check=True, input=dump.stdout)


def run(server: OwnServer, *command: str) -> None:
    process = start_command(*command, DATABASE_URL=server.url, WATCHER_POLL_INTERVAL="0.1")
    _, errors = process.communicate(PATIENCE)
    assert process.returncode == 0, errors


def run_plans(server: OwnServer) -> None:
    run(server, "run_applier", "--once")


def test_site_restored_to_the_moment_before_a_mistake_continues_its_plans_when_they_are_resumed(
    server: OwnServer,
) -> None:
    done, started = make_plan({"a": []}), make_plan({"b": [], "c": ["b"]})
    done.launch()
    copy_database(server)
    base = server.folder / "base"
    command = BASE_BACKUP.replace("/backup/base", str(base)).replace(
        "postgres://backup@db.example.org", server.address
    )
    server.run(*shlex.split(command), "--no-sync")
    run_plans(server)
    server.execute("UPDATE plans_actionplan SET state = 'PENDING' WHERE id = %s", started.pk)
    [(moment,)] = server.execute("SELECT clock_timestamp()")
    run_plans(server)
    server.execute("UPDATE plans_actionplan SET deleted_at = now()")
    server.archive_log()
    server.restore(base, moment)
    plans = "SELECT state, deleted_at FROM plans_actionplan ORDER BY id"
    run(server, "plans", "suspend-restored", "--yes")
    run_plans(server)
    assert server.execute(plans) == [("SUCCEEDED", None), ("PENDING", None)]
    run(server, "plans", "resume", str(started.uuid))
    run_plans(server)
    assert server.execute(plans) == [("SUCCEEDED", None)] * 2
    assert server.execute("SELECT state, attempt FROM actions_action") == [("SUCCEEDED", 1)] * 3
