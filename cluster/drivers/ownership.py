"""Owners of operations of the embedded cloud, which keep others from undoing or ending them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from cluster.models import Server, Volume

OWNER: ContextVar[str] = ContextVar("owner", default="")
CHECK: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)


@contextmanager
def acting_for(work: str, attempt: int = 0, check: Callable[[], None] | None = None) -> Iterator[None]:
    """Set the owner of the operations that this thread begins in the cloud: one attempt at a piece of work.

    Only this attempt may end them, and only this or a later attempt at the same work may undo them.

    Args:
        work: an identifier that is the same in every process that continues the work, such as an action's UUID.
        check: raises an exception if the attempt is over, and else keeps others from ending it until the end of the
            transaction.
    """
    owner_before, check_before = OWNER.set(f"{work}/{attempt}"), CHECK.set(check)
    try:
        yield
    finally:
        CHECK.reset(check_before)
        OWNER.reset(owner_before)


def require_attempt() -> None:
    """Check that the attempt which this thread acts for is not over, and keep it from ending during the transaction.

    A process that was stopped may go on after others have ended its action: it must write nothing more. Call this at
    the end of the transaction: an action's row is locked after those of the cloud, and for a short time.
    """
    check = CHECK.get()
    if check is not None:
        check()


def may_end(row: Server | Volume) -> bool:
    """Return whether the operation in progress on a row belongs to this attempt, or has no owner."""
    return row.operation_owner in {"", OWNER.get()}


def may_undo(row: Server | Volume) -> bool:
    """Return whether the operation on a row belongs to this attempt, or to an earlier one of the same work."""
    work, _, attempt = row.operation_owner.partition("/")
    own, _, latest = OWNER.get().partition("/")
    return may_end(row) or (work == own and int(attempt or 0) <= int(latest))
