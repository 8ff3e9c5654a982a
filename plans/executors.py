"""Where an applier's work is done. The interface has room for a side that sends it to other machines."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Protocol

from django.db import DEFAULT_DB_ALIAS, connections

from actions.leases import Lease
from actions.models import Action

Work = Callable[[Action, Lease], bool]


@dataclass(frozen=True)
class Job:
    """One piece of work at one action: `actions.execution.execute`, `recover` or `revert`.

    After ``limit`` seconds it may be given up.
    """

    work: Work
    action: Action
    lease: Lease
    limit: float = inf


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

    def give_up(self) -> list[Job]:
        """Let go of the jobs that take longer than they may, and return them: their seats are free again."""

    def withdraw(self) -> None:
        """Take back what was not begun; it is reported as not done."""

    def stop(self) -> None: ...


class ThreadExecutor:
    """Threads in this process, each with a database connection of its own.

    They are daemons: one that was given up, because what it does has no end, holds up neither the work nor the exit.
    """

    def __init__(self, workers: int) -> None:
        # One job waits behind each that runs, so that no worker idles until the main thread looks again.
        self.seats = 2 * workers
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()
        self.reports: SimpleQueue[Report] = SimpleQueue()
        self.workers: list[WorkerThread] = []
        for _ in range(workers):
            self.hire()

    def hire(self) -> None:
        worker = WorkerThread(self.jobs, self.reports)
        self.workers.append(worker)
        worker.start()

    def submit(self, job: Job) -> None:
        self.jobs.put(job)

    def finished(self, timeout: float) -> list[Report]:
        reports = []
        with suppress(Empty):
            reports.append(self.reports.get(timeout=timeout))
            while True:
                reports.append(self.reports.get_nowait())
        return reports

    def give_up(self) -> list[Job]:
        overdue = [(worker, job) for worker in self.workers if (job := worker.give_up())]
        for worker, _ in overdue:
            self.workers.remove(worker)
            self.hire()
        return [job for _, job in overdue]

    def withdraw(self) -> None:
        with suppress(Empty):
            while job := self.jobs.get_nowait():
                self.reports.put(Report(job, done=False))

    def stop(self) -> None:
        for _ in self.workers:
            self.jobs.put(None)
        for worker in self.workers:
            worker.join()


class WorkerThread(Thread):
    """Does one job after the other until it is given none, or until it is given up in the midst of one."""

    def __init__(self, jobs: "SimpleQueue[Job | None]", reports: "SimpleQueue[Report]") -> None:
        super().__init__(name="worker", daemon=True)
        self.jobs, self.reports = jobs, reports
        self.lock = Lock()
        self.job: Job | None = None
        self.began = 0.0
        self.is_given_up = False

    def run(self) -> None:
        try:
            while not self.is_given_up and (job := self.jobs.get()):
                self.began, self.job = time.monotonic(), job
                self.hand_in(perform(job))
        finally:
            connections[DEFAULT_DB_ALIAS].close()

    def hand_in(self, report: Report) -> None:
        with self.lock:
            self.job = None
            if not self.is_given_up:
                self.reports.put(report)

    def give_up(self) -> Job | None:
        """Return the job that takes longer than it may, if it does; what still comes of it is not reported."""
        with self.lock:
            if self.job is None or time.monotonic() - self.began <= self.job.limit:
                return None
            self.is_given_up = True
            return self.job


def perform(job: Job) -> Report:
    # A connection that broke under the job before is replaced, here rather than in the work.
    connections[DEFAULT_DB_ALIAS].close_if_unusable_or_obsolete()
    try:
        return Report(job, done=job.work(job.action, job.lease))
    except BaseException as problem:
        return Report(job, done=False, error=problem)
