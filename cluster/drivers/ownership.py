"""Whose an operation of the embedded cloud is: nobody undoes or ends that of another."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from cluster.models import Server, Volume

OWNER: ContextVar[str] = ContextVar("owner", default="")


@contextmanager
def acting_for(owner: str) -> Iterator[None]:
    """Have what this thread begins in the cloud belong to the owner, and only that be ended or undone by it.

    Args:
        owner: what is the same in every process that goes on with the same work, such as an action's UUID.
    """
    token = OWNER.set(owner)
    try:
        yield
    finally:
        OWNER.reset(token)


def is_own(row: Server | Volume) -> bool:
    """Say whether the operation under way on a row may be undone from here; one that belongs to nobody may."""
    return row.operation_owner in {"", OWNER.get()}
