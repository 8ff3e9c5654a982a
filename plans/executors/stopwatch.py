"""A stopwatch for the job of a worker."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from plans.executors.base import Job, Overdue


class Stopwatch:
    """Counts from the start of a job, and anew from when its action itself begins; not while that is suspended.

    What looks at an action first, or what became of it before a crash, has its own time, and takes none from it.
    """

    def __init__(self) -> None:
        self.job: Job | None = None
        self.attempt, self.has_begun = 0, False
        self.began = 0.0
        self.is_stopped = False

    def start(self, job: Job) -> None:
        self.attempt, self.has_begun, self.began = job.action.attempt, False, time.monotonic()
        self.job = job

    def begin(self, attempt: int) -> None:
        self.attempt, self.has_begun, self.began = attempt, True, time.monotonic()

    def look(self) -> Overdue | None:
        """Return the job if it takes longer than it may."""
        if self.job is None or self.is_stopped or time.monotonic() - self.began <= self.job.limit:
            return None
        return Overdue(self.job, self.attempt, self.has_begun)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        since, self.is_stopped = time.monotonic(), True
        try:
            yield
        finally:
            self.began += time.monotonic() - since
            self.is_stopped = False
