"""The interface of executors, with their jobs and reports."""

import time
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Protocol

from django.db import DEFAULT_DB_ALIAS, connections

from actions.engine.leases import Lease, Slot
from actions.models import Action
from plans.executors.leases import PlanLease

Work = Callable[[Action, Lease, Slot], bool]


@dataclass(frozen=True)
class Job:
    """One run of `actions.engine.execution.execute`, `recover` or `revert` for one action.

    The job is hung if it takes more than ``limit`` seconds before the action begins, or more than ``limit`` seconds
    after that.
    """

    work: Work
    action: Action
    lease: PlanLease
    limit: float = inf
    queue: str = ""
    """The queue in which the job waits for a worker."""
    alone: bool = False
    """Whether the job runs only while no other job runs in the same process."""


@dataclass(frozen=True)
class HungJob:
    """A job that exceeded its limit, and the attempt of its action."""

    job: Job
    attempt: int
    has_begun: bool
    """Whether the action began. Before that, the worker checks its conditions, or its outcome after a crash."""


@dataclass(frozen=True)
class Report:
    """The result of a job.

    ``done`` is false if the action was not brought to its end here: another worker owns it, it was released, or
    ``error`` was raised by the site itself.
    """

    job: Job
    done: bool
    error: BaseException | None = None
    is_abandoned: bool = False
    """Whether the worker is lost, so that the action has to be recovered."""


class WorkerError(Exception):
    """A worker failed to run a job for a reason of its own, which the message names."""


@dataclass(frozen=True)
class JobStarted:
    """A worker started this job by itself, because the end of its previous action made the action ready."""

    job: Job


class Executor(Protocol):
    def queue_of(self, action: Action) -> str:
        """Return the queue in which an action waits for a worker. Each queue has its own slots."""

    @property
    def free_queues(self) -> Set[str]:
        """The queues that have a free slot. A suspended job occupies no slot.

        An applier submits jobs for these queues only. Other actions stay in the database.
        """

    def are_stalled(self, actions: Set[int], queues: Set[str]) -> bool:
        """Return whether all these actions wait for workers of these queues while another queue makes progress."""

    def submit(self, job: Job) -> None: ...

    def track(self, job: Job) -> bool:
        """Report the end of a job that a worker outside this process already runs.

        Returns:
            False if this executor has no such workers.
        """

    def collect_reports(self, timeout: float) -> Sequence[Report | JobStarted]:
        """Return the reports since the last call, and wait for the first one up to ``timeout`` seconds."""

    def release_hung_jobs(self) -> list[HungJob]:
        """Release the slots of hung jobs, and return these jobs. They are not reported any more."""

    def drop_plan(self, plan: int) -> None:
        """Report the jobs of a plan that workers outside this process run as not done, and stop tracking them."""

    def withdraw(self) -> None:
        """Withdraw the jobs that have not started, stop waiting for suspended ones, and track no other workers.

        All these jobs are reported as not done.
        """

    def stop(self) -> None: ...


def run_job(job: Job, slot: Slot) -> Report:
    # Replace a connection that broke during the previous job.
    connections[DEFAULT_DB_ALIAS].close_if_unusable_or_obsolete()
    try:
        return Report(job, done=job.work(job.action, job.lease, slot))
    except BaseException as problem:
        return Report(job, done=False, error=problem)


class Stopwatch:
    """The running time of a job, which restarts when its action begins and stops while the action is suspended.

    The checks before an action, also after a crash, therefore do not count towards the timeout of the action.
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

    def find_hung_job(self) -> HungJob | None:
        """Return the job if it exceeded its limit."""
        if self.job is None or self.is_stopped or time.monotonic() - self.began <= self.job.limit:
            return None
        return HungJob(self.job, self.attempt, self.has_begun)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        since, self.is_stopped = time.monotonic(), True
        try:
            yield
        finally:
            self.began += time.monotonic() - since
            self.is_stopped = False
