"""Whose an operation of the embedded cloud is: nobody undoes or ends that of another."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from cluster.models import Server, Volume

OWNER: ContextVar[str] = ContextVar("owner", default="")


@contextmanager
def acting_for(work: str, attempt: int = 0) -> Iterator[None]:
    """Have what this thread begins in the cloud belong to one attempt at a piece of work.

    Only that attempt ends it, and only that one or a later one of the same work undoes it.

    Args:
        work: what is the same in every process that goes on with it, such as an action's UUID.
    """
    token = OWNER.set(f"{work}/{attempt}")
    try:
        yield
    finally:
        OWNER.reset(token)


def may_end(row: Server | Volume) -> bool:
    """Say whether the operation under way on a row is this attempt's own, or nobody's."""
    return row.operation_owner in {"", OWNER.get()}


def may_undo(row: Server | Volume) -> bool:
    """Say whether the operation under way on a row is this attempt's, or was left behind by one before it."""
    work, _, attempt = row.operation_owner.partition("/")
    own, _, latest = OWNER.get().partition("/")
    return may_end(row) or (work == own and int(attempt or 0) <= int(latest))
