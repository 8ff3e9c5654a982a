"""The progress of the main loop of a process, by which its health check and its heartbeat find that it hangs."""

import time
from math import inf


class MainLoop:
    """The main loop of this process, which records each of its turns.

    It hangs if a turn takes longer than a limit that is far above any legitimate one. Without a limit it never does:
    before the first turn, and while the process stops, which its service manager limits.
    """

    def __init__(self) -> None:
        self.limit = inf
        self.turned = 0.0

    def begin_turn(self, limit: float) -> None:
        self.turned, self.limit = time.monotonic(), limit

    def end(self) -> None:
        self.limit = inf

    def find_problem(self) -> str | None:
        """Return a sentence about the turn that hangs, or None."""
        # Another thread writes the limit last.
        limit = self.limit
        seconds = time.monotonic() - self.turned
        if seconds <= limit:
            return None
        return f"The main loop has not ended a turn for {seconds:.0f} seconds, more than {limit:.0f}."


main_loop = MainLoop()
