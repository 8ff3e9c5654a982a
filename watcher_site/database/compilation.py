"""PostgreSQL compiles no statement of the site's to machine code.

It does so where it takes a statement for dear: mostly since the statistics are older than the rows. To compile takes
seconds then, for what runs in milliseconds (https://www.postgresql.org/docs/current/jit-decision.html).
"""

from typing import Any


def compile_nothing(connection: Any, **_: Any) -> None:
    """Tell a new connection to PostgreSQL so: a receiver of Django's `connection_created`."""
    if connection.vendor == "postgresql":
        connection.connection.execute("SET jit = off")
