"""Locks and checks for the preparation of a site: only one process prepares it at a time, and its port is free."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.files import locks
from django.db import connection

from watcher_site.refusals import Conflict, Invalid

WAITING = "Another start prepares this site: waiting for it."
# An arbitrary key: "watcher" in ASCII.
ADVISORY_LOCK = int.from_bytes(b"watcher")


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
        reason = problem.strerror or problem
        raise Conflict(f"PORT: {address}:{port} cannot be served: {reason}. Choose another with PORT=….") from problem
