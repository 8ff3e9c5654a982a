"""A database of the benchmark's own, made for one run and dropped after it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

NAME = f"watcher_benchmark_{os.getpid()}"


def server_url() -> str:
    """Return the URL of a database on the server to use: the suite's, or the site's where that is PostgreSQL."""
    url = os.environ.get("DATABASE_URL", "")
    default = url if url.startswith("postgres") else "postgres://postgres@127.0.0.1:5432/postgres"
    return os.environ.get("WATCHER_TEST_POSTGRESQL_URL", default)


@contextmanager
def own_database() -> Iterator[str]:
    """Create an empty database, give its URL, and drop it in the end."""
    server, name = server_url(), sql.Identifier(NAME)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
        try:
            yield urlsplit(server)._replace(path=f"/{NAME}").geturl()
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
