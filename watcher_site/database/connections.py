"""Options of new connections to PostgreSQL: no just-in-time compilation, and faster loading of timestamps.

PostgreSQL compiles a statement whose cost it estimates as high: mostly since the statistics are older than the rows.
That takes seconds for what runs in milliseconds (https://www.postgresql.org/docs/current/jit-decision.html).
Every row of the API and of the console has two or three timestamps.
"""

from datetime import UTC, datetime
from typing import Any

from psycopg.abc import Buffer
from psycopg.types.datetime import TimestamptzLoader


class TimestampLoader(TimestamptzLoader):
    """Loads timestamps of sessions whose time zone is UTC, as those of Django are.

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


def prepare_connection(connection: Any, **_: Any) -> None:
    """Prepare a new connection, if it is one to PostgreSQL: a receiver of Django's `connection_created`."""
    if connection.vendor == "postgresql":
        connection.connection.adapters.register_loader("timestamptz", TimestampLoader)
        connection.connection.execute("SET jit = off")
