"""A worker's place among those of its executor."""

import time
from contextlib import AbstractContextManager, nullcontext


class Seat:
    """Where one action is at work. While it is suspended another worker may have the place.

    This one is nobody's: the whole process waits.
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
