"""A database of the benchmark's own, made for one run and dropped after it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

# Without these a commit costs next to nothing, and a power failure takes what was committed.
DURABILITY = ("fsync", "synchronous_commit")
NAME = f"watcher_benchmark_{os.getpid()}"


def server_url() -> str:
    """Return the URL of a database on the server to use: the suite's, or the site's where that is PostgreSQL."""
    url = os.environ.get("DATABASE_URL", "")
    default = url if url.startswith("postgres") else "postgres://postgres@127.0.0.1:5432/postgres"
    return os.environ.get("WATCHER_TEST_POSTGRESQL_URL", default)


class NotDurable(Exception):
    """The server may lose what it said was written: its rates are no measure."""


def require_durability(database: str) -> dict[str, str]:
    """Return what PostgreSQL says of the settings that have a commit outlive the machine.

    Raises:
        NotDurable: one of them is off.
    """
    with psycopg.connect(database, autocommit=True) as connection:
        said = {name: connection.execute(f"SHOW {name}").fetchone() for name in DURABILITY}
    found = {name: row[0] for name, row in said.items() if row}
    if missing := [name for name, value in found.items() if value == "off"]:
        raise NotDurable(f"{', '.join(missing)}: off on the PostgreSQL server. Measure with both on.")
    return found


@contextmanager
def own_database(suffix: str = "") -> Iterator[str]:
    """Create an empty database, return its URL, and drop it in the end.

    Args:
        suffix: the end of its name, if a benchmark has several.
    """
    own = f"{NAME}_{suffix}" if suffix else NAME
    server, name = server_url(), sql.Identifier(own)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
        try:
            yield urlsplit(server)._replace(path=f"/{own}").geturl()
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
