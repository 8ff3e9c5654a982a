"""Waiting for a condition that other threads and processes fulfil, with a timeout for slow machines."""

import time
from collections.abc import Callable

# In seconds. A condition that becomes true ends the wait immediately; another one fails the test.
PATIENCE = 120


def wait_for(condition: Callable[[], object], seconds: float = PATIENCE, interval: float = 0.02) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not become true in time"
        time.sleep(interval)
