"""Waiting for what the cloud has begun to do."""

import time
from collections.abc import Callable
from typing import TypeVar

import structlog
from django.conf import settings

from cluster.drivers.base import AnswerLost, Checkpoint, CloudUnavailable, OperationOutstanding

T = TypeVar("T")
log = structlog.get_logger(__name__)


def wait_until(look: Callable[[], T], is_over: Callable[[T], bool], what: str, checkpoint: Checkpoint) -> T:
    """Poll every `settings.OPENSTACK_POLL_INTERVAL` seconds until an operation is over, and return the last result.

    If the cloud does not answer, the operation may still be in progress: polling goes on until the timeout.

    Raises:
        OperationOutstanding: it was not over within `settings.OPENSTACK_OPERATION_TIMEOUT` seconds.
    """
    end = time.monotonic() + settings.OPENSTACK_OPERATION_TIMEOUT
    problem = ""
    while True:
        checkpoint()
        try:
            found = look()
        except CloudUnavailable as trouble:
            problem = f" ({trouble})"
            log.warning("cloud does not answer", waiting_for=what, problem=str(trouble))
        else:
            problem = ""
            if is_over(found):
                return found
        if time.monotonic() >= end:
            raise OperationOutstanding(
                f"{what} was not over after {settings.OPENSTACK_OPERATION_TIMEOUT:g} seconds,"
                f" and is no longer waited for{problem}"
            )
        time.sleep(settings.OPENSTACK_POLL_INTERVAL)


def wait_for_begin(
    look: Callable[[], T], has_begun: Callable[[T], bool], problem: CloudUnavailable, what: str, checkpoint: Checkpoint
) -> T:
    """Return the result of `look` for an operation that has begun, although its request failed with this problem.

    The cloud is polled until it answers. It may accept a request after its answer was lost: it then has another
    `settings.OPENSTACK_TIMEOUT` seconds to begin.

    Raises:
        CloudUnavailable: the operation has not begun.
        OperationOutstanding: the cloud did not answer in time.
    """
    patience = settings.OPENSTACK_TIMEOUT if isinstance(problem, AnswerLost) else 0
    end: float | None = None

    def is_decided(found: T) -> bool:
        nonlocal end
        if end is None:
            end = time.monotonic() + patience
        return has_begun(found) or time.monotonic() >= end

    found = wait_until(look, is_decided, what, checkpoint)
    if not has_begun(found):
        raise problem
    return found
