"""Waiting for what other threads and processes do: for as long as that takes on a slow machine, and no longer."""

import time
from collections.abc import Callable

# In seconds. A condition that comes true is seen at once; one that never does fails the test in the end.
PATIENCE = 120


def wait_for(condition: Callable[[], object], seconds: float = PATIENCE, interval: float = 0.02) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to pass in time"
        time.sleep(interval)
