"""A handicap for two competitors: the last winner begins later next time, until both win about equally often.

Without it, the one with less to do wins every time, and where the machine decides who that is, a race that is true on
one machine is none on another.
"""

import time
from collections.abc import Callable
from typing import Any

# In seconds. Nobody is held back more exactly than the clock of a thread that sleeps.
FIRST_STEP = 100e-6
SMALLEST_STEP = 10e-6


class Handicap:
    """Moves against the winner by a step that grows as long as the same one wins, and shrinks when the other does.

    So it finds where both are equally fast within a few dozen rounds, be they a microsecond apart or a second, stays
    there, where the rounds are closest, and follows when the machine becomes slower.
    """

    def __init__(self) -> None:
        self.seconds = 0.0  # by which the first begins later than the second; below zero, earlier
        self.step = FIRST_STEP
        self.won_before: bool | None = None

    def note(self, first_won: bool) -> None:
        if self.won_before is not None:
            self.step = self.step * 1.5 if first_won == self.won_before else max(self.step / 2, SMALLEST_STEP)
        self.won_before = first_won
        self.seconds += self.step if first_won else -self.step

    def apply(self, first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Callable[[], Any], ...]:
        """Return both as they are to start at the same moment."""
        return later(first, self.seconds), later(second, -self.seconds)


def later(verb: Callable[[], Any], seconds: float) -> Callable[[], Any]:
    def wait_and_do() -> Any:
        time.sleep(max(0, seconds))
        return verb()

    return wait_and_do
