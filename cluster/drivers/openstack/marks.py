"""Whose an operation is that the cloud does by itself: a mark in our row of what it is about."""

from collections.abc import Iterator
from contextlib import contextmanager

from cluster.drivers.base import CloudError, CloudUnavailable, OperationOutstanding
from cluster.drivers.ownership import OWNER, may_undo
from cluster.models import Server, Volume

Marked = type[Server] | type[Volume]


@contextmanager
def marked(model: Marked, uuid: str) -> Iterator[None]:
    """Mark an operation as one's own until it came to an end, good or bad.

    An interruption leaves the mark, and so does a cloud that did not tell the end: by it, whoever goes on with the
    same work knows that the operation may be ended.
    """
    owner = OWNER.get()
    model.objects.filter(uuid=uuid).update(operation_owner=owner)
    try:
        yield
    except (CloudUnavailable, OperationOutstanding):
        raise
    except CloudError:
        remove_mark(model, uuid, owner)
        raise
    remove_mark(model, uuid, owner)


def remove_mark(model: Marked, uuid: str, owner: str) -> None:
    model.objects.filter(uuid=uuid, operation_owner=owner).update(operation_owner="")


def is_marked(model: Marked, uuid: str) -> bool:
    """Say whether what may be under way was begun here. What nobody of us began is a person's, and none of ours."""
    row = model.objects.filter(uuid=uuid).exclude(operation_owner="").first()
    return row is not None and may_undo(row)
