"""Options of new connections to PostgreSQL: no just-in-time compilation, and faster loading of timestamps.

PostgreSQL compiles statements with a high estimated cost, mostly because the statistics are out of date. This takes
seconds for statements that run in milliseconds (https://www.postgresql.org/docs/current/jit-decision.html). Every row
of the API and the console has two or three timestamps.
"""

from datetime import UTC, datetime
from typing import Any

from psycopg.abc import Buffer
from psycopg.types.datetime import TimestamptzLoader


class TimestampLoader(TimestamptzLoader):
    """Loads timestamps of sessions whose time zone is UTC, as Django's are.

    Raises:
        psycopg.DataError: Python cannot represent the time: infinity, or a year before 1 or after 9999.
    """

    # Django replaces a loader whose attribute differs from the time zone of the connection.
    timezone = UTC

    def load(self, data: Buffer) -> datetime:
        try:
            return datetime.fromisoformat(str(data, "ascii"))
        except ValueError:
            return super().load(data)


def prepare_connection(connection: Any, **_: Any) -> None:
    """Prepare a new connection to PostgreSQL: a receiver of Django's `connection_created`."""
    if connection.vendor == "postgresql":
        connection.connection.adapters.register_loader("timestamptz", TimestampLoader)
        connection.connection.execute("SET jit = off")
