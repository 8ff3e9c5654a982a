"""The time that operations of the embedded cloud take, and their failures."""

import random
import time

from django.conf import settings

from cluster.drivers.base import Checkpoint, OperationFailed

SLICE_SECONDS = 0.1


def pass_time(checkpoint: Checkpoint) -> None:
    """Wait as long as an operation takes.

    Raises:
        OperationFailed: the operation failed, by chance.
    """
    end = time.monotonic() + settings.EMBEDDED_CLOUD_SECONDS
    checkpoint()
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, SLICE_SECONDS))
        checkpoint()
    if random.random() < settings.EMBEDDED_CLOUD_FAILURE_RATE:  # noqa: S311 (chance, no secret)
        raise OperationFailed("The embedded cloud failed, as it does at its EMBEDDED_CLOUD_FAILURE_RATE")
