"""Operations that the site requests in an OpenStack cloud: their owners, the wait for their ends, their failures."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import structlog
from django.conf import settings

from cluster.drivers import openstack_messages as messages
from cluster.drivers.base import (
    AnswerLost,
    Checkpoint,
    CloudError,
    CloudUnavailable,
    NoValidHost,
    OperationFailed,
    OperationOutstanding,
)
from cluster.drivers.openstack.access import Access, join_lines
from cluster.drivers.ownership import OWNER, may_undo
from cluster.models import Server, Volume

T = TypeVar("T")
Marked = type[Server] | type[Volume]
log = structlog.get_logger(__name__)
# Nova's message, often without a further reason.
NO_VALID_HOST = "No valid host was found."
# In seconds. An event does not end if its service was killed.
REASON_TIMEOUT = 10


@contextmanager
def marked(model: Marked, uuid: str) -> Iterator[None]:
    """Mark an operation as the site's own until it ends, with or without success.

    The mark stays after an interruption, and if the cloud did not report the end. It shows the process that continues
    the work that it may end the operation.
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


def is_marked(model: Marked, uuid: str) -> bool:
    """Return whether this or an earlier attempt began the operation in progress. Other operations are users'."""
    row = model.objects.filter(uuid=uuid).exclude(operation_owner="").first()
    return row is not None and may_undo(row)


def remove_mark(model: Marked, uuid: str, owner: str) -> None:
    model.objects.filter(uuid=uuid, operation_owner=owner).update(operation_owner="")


def wait_until(poll: Callable[[], T], is_done: Callable[[T], bool], operation: str, checkpoint: Checkpoint) -> T:
    """Poll every `settings.OPENSTACK_POLL_INTERVAL` seconds until an operation is over, and return the last result.

    If the cloud does not respond, the operation may still be in progress, so polling continues until the timeout.

    Args:
        operation: a description of the operation, for messages.

    Raises:
        OperationOutstanding: it was not over within `settings.OPENSTACK_OPERATION_TIMEOUT` seconds.
    """
    end = time.monotonic() + settings.OPENSTACK_OPERATION_TIMEOUT
    problem = ""
    while True:
        checkpoint()
        try:
            answer = poll()
        except CloudUnavailable as trouble:
            problem = str(trouble)
            log.warning("no answer from the cloud", waiting_for=operation, problem=problem)
        else:
            problem = ""
            if is_done(answer):
                return answer
        if time.monotonic() >= end:
            message = messages.NOT_OVER_BECAUSE if problem else messages.NOT_OVER
            seconds = f"{settings.OPENSTACK_OPERATION_TIMEOUT:g}"
            raise OperationOutstanding(message.fill(ended=operation, seconds=seconds, reason=problem))
        time.sleep(settings.OPENSTACK_POLL_INTERVAL)


def wait_for_begin(
    poll: Callable[[], T],
    has_begun: Callable[[T], bool],
    problem: CloudUnavailable,
    operation: str,
    checkpoint: Checkpoint,
) -> T:
    """Return the result of `poll` for an operation that began although its request failed with this problem.

    The cloud is polled until it responds. It may accept a request after its response was lost, and therefore has
    another `settings.OPENSTACK_TIMEOUT` seconds to begin.

    Raises:
        CloudUnavailable: the operation has not begun.
        OperationOutstanding: the cloud did not respond in time.
    """
    extra_time = settings.OPENSTACK_TIMEOUT if isinstance(problem, AnswerLost) else 0
    end: float | None = None

    def is_decided(answer: T) -> bool:
        nonlocal end
        if end is None:
            end = time.monotonic() + extra_time
        return has_begun(answer) or time.monotonic() >= end

    answer = wait_until(poll, is_decided, operation, checkpoint)
    if not has_begun(answer):
        raise problem
    return answer


def make_failure(operation: str, reason: str) -> OperationFailed | NoValidHost:
    """Return the error for a failed operation with Nova's reason, which may be empty."""
    if reason.startswith(NO_VALID_HOST):
        further = reason.removeprefix(NO_VALID_HOST).strip()
        return NoValidHost(further) if further else NoValidHost()
    message = messages.OPERATION_FAILED_BECAUSE if reason else messages.OPERATION_FAILED
    return OperationFailed(message.fill(ended=operation, reason=reason))


def find_reason(access: Access, server: str) -> str:
    """Return the cloud's message about the last action on a server, or "".

    Nova clears the task state before it stores the fault and the end of the event, so this waits for both.
    """
    end = time.monotonic() + REASON_TIMEOUT
    try:
        while True:
            reason = access.send(lambda cloud: read_fault(cloud, server) or read_event(cloud, server))
            if reason is not None:
                return join_lines(reason)
            if time.monotonic() >= end:
                return ""
            time.sleep(settings.OPENSTACK_POLL_INTERVAL)
    except CloudError:
        # The failure itself is known; only the reason is missing.
        return ""


def read_fault(cloud: Any, server: str) -> str:
    details = cloud.compute.get_server(server)
    return join_lines((details.fault or {}).get("message") or "") if details.status == "ERROR" else ""


def read_event(cloud: Any, server: str) -> str | None:
    """Return the details of the last action on a server if it failed, or None if it has not ended."""
    latest = next(iter(cloud.compute.server_actions(server)), None)
    if latest is None:
        return ""
    latest = cloud.compute.get_server_action(latest.request_id, server)
    events = latest.events or []
    if any(event["result"] is None for event in events):
        return None
    details = [str(event["details"]) for event in events if event.get("details")]
    return (details[-1] if details else str(latest.message)) if latest.message else ""
