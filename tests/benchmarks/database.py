"""A database that is created for one run of the benchmark, and dropped after it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

# Without these settings a commit is almost free, and a power failure may lose committed transactions.
DURABILITY = ("fsync", "synchronous_commit")
NAME = f"watcher_benchmark_{os.getpid()}"


def server_url() -> str:
    """Return the URL of a database on the server to use: that of the test suite, or of the site for PostgreSQL."""
    url = os.environ.get("DATABASE_URL", "")
    default = url if url.startswith("postgres") else "postgres://postgres@127.0.0.1:5432/postgres"
    return os.environ.get("WATCHER_TEST_POSTGRESQL_URL", default)


class NotDurable(Exception):
    """The server may lose committed transactions, so that its rates are not comparable."""


def require_durability(database: str) -> dict[str, str]:
    """Return the settings of PostgreSQL that make commits durable.

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
