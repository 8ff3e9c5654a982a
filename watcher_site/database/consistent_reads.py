"""Consistent reads: all queries of a console page read the same state of the database."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from psycopg import IsolationLevel
from psycopg.pq import TransactionStatus


@contextmanager
def consistent_reads() -> Iterator[None]:
    """Run all queries of a block, which must not write, on the snapshot of the first one.

    The transaction does not block writers, is not blocked by them, and cannot fail with a serialization error. Within
    another transaction, this does nothing.
    """
    if connection.in_atomic_block:
        yield
        return
    connection.ensure_connection()
    with (
        read_only_transaction() if connection.vendor == "postgresql" else deferred_transaction(),
        transaction.atomic(),
    ):
        yield


@contextmanager
def read_only_transaction() -> Iterator[None]:
    """Make the next transaction on PostgreSQL REPEATABLE READ and READ ONLY, by options of its `BEGIN`."""
    session: Any = connection.connection
    session.isolation_level, session.read_only = IsolationLevel.REPEATABLE_READ, True
    try:
        yield
    finally:
        # A lost connection is replaced by one without these options.
        if session.info.transaction_status == TransactionStatus.IDLE:
            session.isolation_level = session.read_only = None


@contextmanager
def deferred_transaction() -> Iterator[None]:
    """Begin the next transaction on SQLite without the write lock, which other transactions take at their start."""
    site: Any = connection
    mode = site.transaction_mode
    site.transaction_mode = None
    try:
        yield
    finally:
        site.transaction_mode = mode
