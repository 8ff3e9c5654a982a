"""The interface of executors, their jobs and reports, and the stopwatch of a job."""

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
    """One piece of work at one action: `actions.engine.execution.execute`, `recover` or `revert`.

    After ``limit`` seconds it may be given up, and after as many from when the action itself begins.
    """

    work: Work
    action: Action
    lease: PlanLease
    limit: float = inf
    queue: str = ""
    """Where it waits for a worker."""
    alone: bool = False
    """Whether no other job may run in the same process meanwhile."""


@dataclass(frozen=True)
class Overdue:
    """A job that takes longer than it may, and the attempt at its action that the worker is at."""

    job: Job
    attempt: int
    has_begun: bool
    """Whether the action itself has; before that it is looked at whether it is to be done, or what became of it."""


@dataclass(frozen=True)
class Report:
    """The result of a job: done, not ours to do (any more), or an error of our own."""

    job: Job
    done: bool
    error: BaseException | None = None
    is_abandoned: bool = False
    """Its worker is gone: the action is to be recovered."""


class WorkerTrouble(Exception):
    """A worker could not do a job for a reason that is not the job's; the message names the reason."""


@dataclass(frozen=True)
class Beginning:
    """A worker that did one job goes on by itself with this one, for which the first made the way free."""

    job: Job


class Executor(Protocol):
    def queue_of(self, action: Action) -> str:
        """Return the queue in which an action waits for a worker. Each queue has slots of its own."""

    @property
    def free_queues(self) -> Set[str]:
        """The queues that have a free slot, not counting suspended jobs. Actions of other queues wait in the database.

        This alone tells an applier how many jobs it may submit.
        """

    def stalls(self, actions: Set[int], queues: Set[str]) -> bool:
        """Return whether all these actions wait for workers of these queues, while another queue makes progress."""

    def submit(self, job: Job) -> None: ...

    def follow(self, job: Job) -> bool:
        """Report on what a worker outside of this process has in hand already; false, if there are no such workers."""

    def finished(self, timeout: float) -> Sequence[Report | Beginning]:
        """Return the reports since the last call, waiting for the first one up to so many seconds."""

    def give_up(self) -> list[Overdue]:
        """Release the jobs that exceed their timeouts, and return them: their slots are free again."""

    def forget(self, plan: int) -> None:
        """A plan is no longer its applier's: what workers outside of this process do of it is reported as not done."""

    def withdraw(self) -> None:
        """Take back what was not begun, leave to others what they have in hand, and what is suspended.

        All of it is reported as not done.
        """

    def stop(self) -> None: ...


def perform(job: Job, slot: Slot) -> Report:
    # A connection that broke under the job before is replaced, here rather than in the work.
    connections[DEFAULT_DB_ALIAS].close_if_unusable_or_obsolete()
    try:
        return Report(job, done=job.work(job.action, job.lease, slot))
    except BaseException as problem:
        return Report(job, done=False, error=problem)


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
