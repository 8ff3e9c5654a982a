"""Where an applier's work is done. The interface has room for a side that sends it to other machines."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Protocol

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from actions.models import Action
from actions.phases import Lease

Work = Callable[[Action, Lease], bool]


@dataclass(frozen=True)
class Job:
    """One piece of work at one action: `actions.execution.execute`, `recover` or `revert`."""

    work: Work
    action: Action
    lease: Lease


@dataclass(frozen=True)
class Report:
    """What became of a job: done, not ours to do (any more), or an error of our own."""

    job: Job
    done: bool
    error: BaseException | None = None


class Executor(Protocol):
    seats: int
    """How many jobs it takes at once; the rest waits in the database."""

    def submit(self, job: Job) -> None: ...

    def finished(self, timeout: float) -> list[Report]:
        """Return the reports since the last call, waiting for the first one up to so many seconds."""

    def withdraw(self) -> None:
        """Take back what was not begun; it is reported as not done."""

    def stop(self) -> None: ...


class ThreadExecutor:
    """A pool of threads in this process; each thread keeps one database connection until the pool stops."""

    def __init__(self, workers: int) -> None:
        # One job waits behind each that runs, so that no worker idles until the main thread looks again.
        self.seats = 2 * workers
        self.connections: list[BaseDatabaseWrapper] = []
        self.pool = ThreadPoolExecutor(workers, thread_name_prefix="worker", initializer=self.keep_connection)
        self.futures: dict[Future[bool], Job] = {}
        self.reports: SimpleQueue[Future[bool]] = SimpleQueue()

    def keep_connection(self) -> None:
        own = connections[DEFAULT_DB_ALIAS]
        own.inc_thread_sharing()
        self.connections.append(own)

    def submit(self, job: Job) -> None:
        future = self.pool.submit(perform, job)
        self.futures[future] = job
        future.add_done_callback(self.reports.put)

    def finished(self, timeout: float) -> list[Report]:
        reports = []
        with suppress(Empty):
            reports.append(self.report(self.reports.get(timeout=timeout)))
            while True:
                reports.append(self.report(self.reports.get_nowait()))
        return reports

    def report(self, future: Future[bool]) -> Report:
        job = self.futures.pop(future)
        if future.cancelled():
            return Report(job, done=False)
        error = future.exception()
        return Report(job, done=not error and future.result(), error=error)

    def withdraw(self) -> None:
        for future in list(self.futures):
            future.cancel()

    def stop(self) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)
        for own in self.connections:
            own.close()


def perform(job: Job) -> bool:
    # A connection that broke under the job before is replaced, here rather than in the work.
    connections[DEFAULT_DB_ALIAS].close_if_unusable_or_obsolete()
    return job.work(job.action, job.lease)
