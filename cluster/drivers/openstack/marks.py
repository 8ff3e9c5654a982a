"""Marks that this site began an operation of the cloud, stored in our row of the object."""

from collections.abc import Iterator
from contextlib import contextmanager

from cluster.drivers.base import CloudError, CloudUnavailable, OperationOutstanding
from cluster.drivers.ownership import OWNER, may_undo
from cluster.models import Server, Volume

Marked = type[Server] | type[Volume]


@contextmanager
def marked(model: Marked, uuid: str) -> Iterator[None]:
    """Mark an operation as ours until it ends, with or without success.

    The mark stays after an interruption, and if the cloud did not report the end: by it the process that continues the
    work knows that it may end the operation.
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
    """Return whether this attempt, or one before it, began the operation in progress. Others were begun by people."""
    row = model.objects.filter(uuid=uuid).exclude(operation_owner="").first()
    return row is not None and may_undo(row)
