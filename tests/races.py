"""Two operations that start at the same time in two threads, and interleave by chance.

Test each rule in a defined order first, with `tests.interleaving`.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from django.db import connections

from plans.models import ActionPlan
from tests.waiting import PATIENCE
from watcher_site.refusals import Refused
from watcher_site.state_machine import ConcurrentTransition, TransitionNotAllowed

FACTOR = int(os.environ.get("WATCHER_TEST_ROUNDS", "1"))


def rounds(number: int) -> int:
    """Return a number of rounds, multiplied by the variable WATCHER_TEST_ROUNDS."""
    return number * FACTOR


# `tests.chaos` runs thousands of rounds.
ROUNDS = rounds(60)


class Race:
    """Two threads that start each round together, and keep their database connections."""

    def __enter__(self) -> "Race":
        self.barrier = Barrier(2)
        self.pool = ThreadPoolExecutor(2)
        return self

    def __exit__(self, *_: Any) -> None:
        for future in [self.pool.submit(self.leave) for _ in range(2)]:
            future.result()
        self.pool.shutdown()

    def leave(self) -> None:
        self.barrier.wait(PATIENCE)
        connections.close_all()

    def run(self, *operations: Callable[[], Any]) -> list[bool]:
        """Return for each operation whether it succeeded: it was not refused, and did not return false."""
        futures = [self.pool.submit(self.start, operation) for operation in operations]
        return [future.result() for future in futures]

    def start(self, operation: Callable[[], Any]) -> bool:
        self.barrier.wait(PATIENCE)
        try:
            return operation() is not False
        except (ConcurrentTransition, TransitionNotAllowed, Refused, ActionPlan.DoesNotExist):
            return False
