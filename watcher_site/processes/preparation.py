"""Locks and checks for the preparation of a site: only one process prepares it at a time, and its port is free."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EADDRINUSE
from pathlib import Path

from django.conf import settings
from django.core.files import locks
from django.db import connection

from watcher_site.messages import cut
from watcher_site.refusals import Conflict, Invalid

WAITING = "Another start prepares this site: waiting for it."
# An arbitrary key: "watcher" in ASCII.
ADVISORY_LOCK = int.from_bytes(b"watcher")

# The processes of Linux; other systems do not have this folder.
PROCESSES = Path("/proc")
# The state of a listening socket in ``/proc/net/tcp``.
LISTEN = "0A"
LONGEST_COMMAND = 100


@contextmanager
def exclusive_preparation(write_line: Callable[[str], object]) -> Iterator[None]:
    """Hold the lock for preparing this database, and print a line if another process holds it.

    The lock is released when its process ends. On PostgreSQL it is an advisory lock of the database, otherwise a file
    lock in `settings.DATA_DIR`.
    """
    with lock_database(write_line) if connection.vendor == "postgresql" else lock_file(write_line):
        yield


@contextmanager
def lock_database(write_line: Callable[[str], object]) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [ADVISORY_LOCK])
        if not cursor.fetchone()[0]:
            write_line(WAITING)
            cursor.execute("SELECT pg_advisory_lock(%s)", [ADVISORY_LOCK])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [ADVISORY_LOCK])


@contextmanager
def lock_file(write_line: Callable[[str], object]) -> Iterator[None]:
    with (settings.DATA_DIR / "prepare.lock").open("a") as file:
        if not locks.lock(file, locks.LOCK_EX | locks.LOCK_NB):
            write_line(WAITING)
            locks.lock(file, locks.LOCK_EX)
        yield


def require_free_port(address: str, port: int) -> None:
    """Raise `Conflict` if the port is in use, or `Invalid` if this machine does not have the address."""
    try:
        family, _, _, _, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except socket.gaierror as problem:
        raise Invalid(f"WATCHER_BIND: {address} is not an address: {problem.strerror}.") from problem
    except OSError as problem:
        reason, advice = problem.strerror or str(problem), "Choose another with PORT=…."
        if problem.errno == EADDRINUSE and (holder := find_listener(port)):
            number, command = holder
            reason += f" by process {number} ({command})"
            advice = f"Stop it with kill {number}, or choose another with PORT=…."
        raise Conflict(f"PORT: {address}:{port} cannot be served: {reason}. {advice}") from problem


def find_listener(port: int) -> tuple[int, str] | None:
    """Return the id and the command of the process that listens on a TCP port, as far as Linux shows it to this user.

    Of a process and its children that share the port, such as those of a web server, it is the process.
    """
    rows = [line.split() for table in PROCESSES.glob("net/tcp*") for line in table.read_text().splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{port:04X}") and row[3] == LISTEN}
    found = {}
    for folder in PROCESSES.glob("[0-9]*"):
        with suppress(OSError):
            if any(str(file.readlink()) in sockets for file in (folder / "fd").iterdir()):
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                found[folder.name] = parent, (folder / "cmdline").read_bytes().decode(errors="replace")
    for number, (parent, command) in found.items():
        if parent not in found:
            return int(number), cut(" ".join(command.split("\0")).strip(), LONGEST_COMMAND)
    return None
