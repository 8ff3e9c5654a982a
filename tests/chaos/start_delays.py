"""An adaptive delay between the starts of two concurrent operations.

Without a delay, the faster operation wins every round, and which one is faster depends on the machine.
"""

import time
from collections.abc import Callable
from typing import Any

# In seconds. A sleeping thread cannot be delayed more precisely.
FIRST_STEP = 100e-6
SMALLEST_STEP = 10e-6


class AdaptiveStartDelay:
    """A delay of the first of two operations, increased after it wins and decreased after it loses.

    The step grows while the same operation wins, and shrinks when the other one does. Within a few dozen rounds, the
    delay converges to the difference between the operations, from a microsecond to a second, so that both win about
    equally often. It follows when the machine becomes slower.
    """

    def __init__(self) -> None:
        self.seconds = 0.0  # if negative, the second operation is delayed
        self.step = FIRST_STEP
        self.previous_first_won: bool | None = None

    def adapt(self, first_won: bool) -> None:
        if self.previous_first_won is not None:
            same = first_won == self.previous_first_won
            self.step = self.step * 1.5 if same else max(self.step / 2, SMALLEST_STEP)
        self.previous_first_won = first_won
        self.seconds += self.step if first_won else -self.step

    def apply(self, first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Callable[[], Any], ...]:
        """Return both operations, of which one sleeps first. The caller starts them at the same time."""
        return delayed(first, self.seconds), delayed(second, -self.seconds)


def delayed(operation: Callable[[], Any], seconds: float) -> Callable[[], Any]:
    def sleep_and_run() -> Any:
        time.sleep(max(0, seconds))
        return operation()

    return sleep_and_run
