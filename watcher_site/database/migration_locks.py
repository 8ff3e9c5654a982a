"""Lock timeouts of migrations that run while processes of the site use the tables.

A change of a table waits for the transactions that use it, and all later ones queue behind it. Therefore migrations
wait only briefly, release all their locks, and try again. The wait is shorter than PostgreSQL's ``deadlock_timeout``
(a second by default), so that in a deadlock the migration fails, and no process of the site.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from django.db import OperationalError
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_delay, wait_random

log = structlog.get_logger(__name__)
# In seconds: for one lock, and for all attempts.
LONGEST_WAIT = 0.5
LONGEST = 600
# lock_not_available, deadlock_detected
LOCK_ERRORS = {"55P03", "40P01"}


def is_lock_error(problem: BaseException) -> bool:
    """Return whether a statement failed because another transaction holds a lock."""
    return isinstance(problem, OperationalError) and getattr(problem.__cause__, "sqlstate", None) in LOCK_ERRORS


def report_retry(state: RetryCallState) -> None:
    log.warning("migration waits for a lock", attempt=state.attempt_number)


def until_locked() -> Retrying:
    """Return a caller that repeats a function until it gets its locks.

    The function must run in a transaction, or be repeatable after an interruption. The last error is raised after
    `LONGEST` seconds.
    """
    return Retrying(
        retry=retry_if_exception(is_lock_error),
        wait=wait_random(0.5, 1.5),
        stop=stop_after_delay(LONGEST),
        before_sleep=report_retry,
        reraise=True,
    )


@contextmanager
def lock_waits_of(connection: Any, seconds: float) -> Iterator[None]:
    """Limit the time for which statements of a connection wait for a lock; 0 means no limit. SQLite is not affected.

    After an error the limit is not reset, as the connection may be unusable.
    """
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout')")
        (before,) = cursor.fetchone()
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{seconds * 1000:.0f}ms"])
    yield
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [before])
