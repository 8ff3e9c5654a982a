"""The watchdog of a worker process: fail an action that exceeds its timeout, and exit the process."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock, Thread

import structlog
from django.conf import settings
from django.db import connection

from actions.engine.hung_actions import give_up
from actions.engine.slots import Slot
from actions.types.base import LeaseLost
from plans.executors.base import Job
from plans.executors.stopwatch import Stopwatch
from watcher_site.processes.worker import LOST_DATABASE

log = structlog.get_logger(__name__)


class Overtime(Thread, Slot):
    """Watches the one job of a process from a thread of its own, and gives it up once its time is over.

    A suspended action keeps its process waiting, and its time does not count.
    """

    def __init__(self, leave: Callable[[], None], is_stopping: Callable[[], bool]) -> None:
        super().__init__(name="overtime", daemon=True)
        self.leave, self.is_stopping = leave, is_stopping
        self.lock = Lock()
        self.stopwatch = Stopwatch()

    @contextmanager
    def watching(self, job: Job) -> Iterator[None]:
        self.stopwatch.start(job)
        try:
            yield
        finally:
            with self.lock:
                self.stopwatch.job = None

    def begin(self, attempt: int) -> None:
        # Once it is being given up, this waits for the end of the process.
        with self.lock:
            self.stopwatch.begin(attempt)

    def vacated(self) -> AbstractContextManager[None]:
        return self.stopwatch.stopped()

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
            overdue = self.stopwatch.look()
            if overdue is None:
                return
            job = overdue.job
            log.error("action given up", action=str(job.action.uuid), seconds=job.limit)
            try:
                give_up(job.action, job.lease, attempt=overdue.attempt, has_begun=overdue.has_begun)
            except LOST_DATABASE:
                connection.close()
                return
            except Exception as problem:
                log.error("giving up failed", action=str(job.action.uuid), exc_info=problem)
            self.leave()
