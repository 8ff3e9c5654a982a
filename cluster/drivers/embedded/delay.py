"""Simulated durations and failures of the embedded cloud's operations."""

import random
import time

from django.conf import settings

from cluster.drivers.base import Checkpoint, OperationFailed
from cluster.drivers.messages import FAILURE_RATE

SLICE_SECONDS = 0.1


def pass_time(checkpoint: Checkpoint) -> None:
    """Wait for the simulated duration of an operation, calling the checkpoint.

    Raises:
        OperationFailed: a random failure.
    """
    end = time.monotonic() + settings.EMBEDDED_CLOUD_SECONDS
    checkpoint()
    while (remaining := end - time.monotonic()) > 0:
        time.sleep(min(remaining, SLICE_SECONDS))
        checkpoint()
    if random.random() < settings.EMBEDDED_CLOUD_FAILURE_RATE:  # noqa: S311 (chance, no secret)
        raise OperationFailed(FAILURE_RATE.text)
