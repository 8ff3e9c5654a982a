"""A worker's place among those of its executor."""

import time
from contextlib import AbstractContextManager, nullcontext


class Seat:
    """Where one action is at work. While it is suspended another worker may have the place.

    This one is nobody's: the whole process waits, and nobody gives up what is done there.
    """

    def begin(self, attempt: int) -> None:
        """Count the action's time from now on: what looks at it first, before it begins or after a crash, is over.

        Args:
            attempt: the number of the attempt that begins: whoever gives it up gives up this one.

        Raises:
            LeaseLost: the worker was given up before that.
        """

    def vacated(self) -> AbstractContextManager[None]:
        """Let others have the place for as long as the action is suspended."""
        return nullcontext()

    def wait(self, seconds: float) -> None:
        """Wait for so long with a suspended action.

        Raises:
            LeaseLost: the worker leaves; the action stays suspended, for whoever takes it over.
        """
        time.sleep(seconds)


ONLY_SEAT = Seat()
