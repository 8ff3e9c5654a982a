"""A loader of PostgreSQL's timestamps that uses the interpreter's parser, which is faster than a regular expression.

Every row of the API and of the console has two or three of them.
"""

from datetime import UTC, datetime
from typing import Any

from psycopg.abc import Buffer
from psycopg.types.datetime import TimestamptzLoader


class TimestampLoader(TimestamptzLoader):
    """Loads what PostgreSQL writes in a session whose zone is UTC, as Django's are.

    Raises:
        psycopg.DataError: Python has no such time: infinity, or one before the year 1 or after the year 9999.
    """

    # Django asks a connection's loader for it, and replaces a loader of another zone than the connection's.
    timezone = UTC

    def load(self, data: Buffer) -> datetime:
        try:
            return datetime.fromisoformat(str(data, "ascii"))
        except ValueError:
            return super().load(data)


def load_timestamps(connection: Any, **_: Any) -> None:
    """Register the loader with a new PostgreSQL connection: a receiver of Django's `connection_created`."""
    if connection.vendor == "postgresql":
        connection.connection.adapters.register_loader("timestamptz", TimestampLoader)
