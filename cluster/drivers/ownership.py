"""Owners of operations of the embedded cloud, which keep others from undoing or ending them."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from cluster.models import Server, Volume

OWNER: ContextVar[str] = ContextVar("owner", default="")


@contextmanager
def acting_for(work: str, attempt: int = 0) -> Iterator[None]:
    """Set the owner of the operations that this thread begins in the cloud: one attempt at a piece of work.

    Only this attempt may end them, and only this or a later attempt at the same work may undo them.

    Args:
        work: an identifier that is the same in every process that continues the work, such as an action's UUID.
    """
    token = OWNER.set(f"{work}/{attempt}")
    try:
        yield
    finally:
        OWNER.reset(token)


def may_end(row: Server | Volume) -> bool:
    """Return whether the operation in progress on a row belongs to this attempt, or has no owner."""
    return row.operation_owner in {"", OWNER.get()}


def may_undo(row: Server | Volume) -> bool:
    """Return whether the operation on a row belongs to this attempt, or to an earlier one of the same work."""
    work, _, attempt = row.operation_owner.partition("/")
    own, _, latest = OWNER.get().partition("/")
    return may_end(row) or (work == own and int(attempt or 0) <= int(latest))
