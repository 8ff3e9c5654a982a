"""What takes longer than it may, and reaches no checkpoint, takes the process that it keeps with it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Thread

import structlog
from django.conf import settings
from django.db import connection

from actions.seats import Seat
from actions.surrender import give_up
from actions.types.base import LeaseLost
from plans.executors.base import Job
from watcher_site.worker import LOST_DATABASE

log = structlog.get_logger(__name__)


class Overtime(Thread, Seat):
    """Watches the one job of a process from a thread of its own, and gives it up once its time is over.

    A suspended action keeps its process waiting, and its time does not count.
    """

    def __init__(self, leave: Callable[[], None], is_stopping: Callable[[], bool]) -> None:
        super().__init__(name="overtime", daemon=True)
        self.leave, self.is_stopping = leave, is_stopping
        self.is_waiting = False
        self.lock = Lock()
        self.job: Job | None = None
        self.began = 0.0

    @contextmanager
    def watching(self, job: Job) -> Iterator[None]:
        self.began, self.job = time.monotonic(), job
        try:
            yield
        finally:
            with self.lock:
                self.job = None

    @contextmanager
    def vacated(self) -> Iterator[None]:
        since, self.is_waiting = time.monotonic(), True
        try:
            yield
        finally:
            self.began += time.monotonic() - since
            self.is_waiting = False

    def wait(self, seconds: float) -> None:
        if self.is_stopping():
            raise LeaseLost
        time.sleep(seconds)

    def run(self) -> None:
        while True:
            time.sleep(settings.POLL_INTERVAL)
            self.look()

    def look(self) -> None:
        """Fail the job that takes longer than it may, and leave it alone with its thread.

        Where that fails for a reason of our own, the process is left all the same: nobody else watches it.
        """
        with self.lock:
            job = self.job
            if job is None or self.is_waiting or time.monotonic() - self.began <= job.limit:
                return
            log.error("action given up", action=str(job.action.uuid), seconds=job.limit)
            try:
                give_up(job.action, job.lease)
            except LOST_DATABASE:
                connection.close()
                return
            except Exception as problem:
                log.error("giving up failed", action=str(job.action.uuid), exc_info=problem)
            self.leave()
