"""A worker's place among those of its executor."""

import time
from contextlib import AbstractContextManager, nullcontext


class Slot:
    """The slot of one running action. While the action is suspended, another action may use the slot.

    This base class has no slot: the whole process waits, and no watchdog fails the action.
    """

    def begin(self, attempt: int) -> None:
        """Start the timeout of the action; the checks before it, also after a crash, are over.

        Args:
            attempt: the number of the attempt that begins, and that the watchdog may fail.

        Raises:
            LeaseLost: the watchdog has failed the action before that.
        """

    def vacated(self) -> AbstractContextManager[None]:
        """Return a context manager that releases the slot while the action is suspended."""
        return nullcontext()

    def wait(self, seconds: float) -> None:
        """Wait ``seconds`` with a suspended action.

        Raises:
            LeaseLost: the worker ends; the action stays suspended until another worker takes it over.
        """
        time.sleep(seconds)


NO_SLOT = Slot()
