"""Owners of operations in the cloud: only the attempt that began an operation may end it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from cluster.models import Server, Volume

OWNER: ContextVar[str] = ContextVar("owner", default="")
CHECK: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)


@contextmanager
def acting_for(work: str, attempt: int = 0, check: Callable[[], None] | None = None) -> Iterator[None]:
    """Make an attempt at some work the owner of the operations that this thread begins in the cloud.

    Only this attempt may end them, and only this or a later attempt at the same work may undo them.

    Args:
        work: an identifier that is the same in every process that continues the work, such as an action's UUID.
        check: raises an exception if the attempt is over; otherwise locks it until the end of the transaction.
    """
    owner_before, check_before = OWNER.set(f"{work}/{attempt}"), CHECK.set(check)
    try:
        yield
    finally:
        CHECK.reset(check_before)
        OWNER.reset(owner_before)


def require_attempt() -> None:
    """Check that the attempt of this thread is not over, and lock it until the end of the transaction.

    A process that was paused may continue after another one has ended its action, and must not write then. Call this
    at the end of the transaction: the row of an action is locked after those of the cloud, and briefly.
    """
    check = CHECK.get()
    if check is not None:
        check()


def may_end(row: Server | Volume) -> bool:
    """Return whether the operation in progress on a row belongs to this attempt, or has no owner."""
    return row.operation_owner in {"", OWNER.get()}


def may_undo(row: Server | Volume) -> bool:
    """Return whether the operation on a row belongs to this or an earlier attempt at the same work, or to none."""
    work, _, attempt = row.operation_owner.partition("/")
    current_work, _, latest = OWNER.get().partition("/")
    return may_end(row) or (work == current_work and int(attempt or 0) <= int(latest))
