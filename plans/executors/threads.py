"""The executor with threads in the applier's own process."""

from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from queue import Empty, Queue, SimpleQueue
from threading import Condition, Event, Lock, Thread

from django.db import DEFAULT_DB_ALIAS, connections

from actions.engine.leases import Slot
from actions.models import Action
from actions.types.base import LeaseLost
from plans.executors.base import Job, Overdue, Report, Stopwatch, perform

# The only queue: all threads take jobs from it.
QUEUE = ""


class ThreadExecutor:
    """Threads in this process, each with a database connection of its own.

    They are daemons: one that was given up, because what it does has no end, holds up neither the work nor the exit.
    For one whose action is suspended another is hired; when it goes on, the first of them that is free leaves.
    """

    def __init__(self, workers: int) -> None:
        self.wanted = workers
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()
        # No SimpleQueue: a signal that interrupts its `get` may have it wait for ever (CPython).
        self.reports: Queue[Report] = Queue()
        self.leaving = Event()
        self.isolation = Isolation()
        self.lock = Lock()
        self.workers: list[WorkerThread] = []
        self.suspended = self.out = 0
        for _ in range(workers):
            self.hire()

    @property
    def slots(self) -> int:
        # One job waits behind each that runs, so that no worker idles until the main thread looks again.
        return 2 * self.wanted + self.suspended

    def queue_of(self, action: Action) -> str:
        return QUEUE

    @property
    def free_queues(self) -> Set[str]:
        return {QUEUE} if self.out < self.slots else set()

    def stalls(self, actions: Set[int], queues: Set[str]) -> bool:
        return False

    def hire(self) -> None:
        worker = WorkerThread(self)
        self.workers.append(worker)
        worker.start()

    def stand_in(self) -> None:
        """Start another thread in place of one whose action is suspended."""
        with self.lock:
            self.suspended += 1
            self.hire()

    def come_back(self) -> None:
        with self.lock:
            self.suspended -= 1

    def leaves(self, worker: "WorkerThread") -> bool:
        """Return whether a thread is to end because there are more threads than slots."""
        with self.lock:
            is_too_many = worker in self.workers and len(self.workers) > self.wanted + self.suspended
            if is_too_many:
                self.workers.remove(worker)
        return is_too_many

    def submit(self, job: Job) -> None:
        self.out += 1
        self.jobs.put(job)

    def follow(self, job: Job) -> bool:
        return False

    def forget(self, plan: int) -> None:
        """These workers notice by themselves, at their next checkpoint, and report."""

    def finished(self, timeout: float) -> list[Report]:
        reports = []
        with suppress(Empty):
            reports.append(self.reports.get(timeout=timeout))
            while True:
                reports.append(self.reports.get_nowait())
        self.out -= len(reports)
        return reports

    def give_up(self) -> list[Overdue]:
        found = [(worker, overdue) for worker in list(self.workers) if (overdue := worker.give_up())]
        for worker, _ in found:
            with self.lock:
                self.workers.remove(worker)
                self.hire()
        self.out -= len(found)
        return [overdue for _, overdue in found]

    def withdraw(self) -> None:
        self.leaving.set()
        with suppress(Empty):
            while job := self.jobs.get_nowait():
                self.reports.put(Report(job, done=False))

    def stop(self) -> None:
        self.leaving.set()
        with self.lock:
            workers = list(self.workers)
        for _ in workers:
            self.jobs.put(None)
        for worker in workers:
            worker.join()


class WorkerThread(Thread, Slot):
    """Does one job after the other until it is given none, or until it is given up in the midst of one."""

    def __init__(self, executor: ThreadExecutor) -> None:
        super().__init__(name="worker", daemon=True)
        self.executor = executor
        self.lock = Lock()
        self.stopwatch = Stopwatch()
        self.is_given_up = False
        self.admitted: Job | None = None

    def run(self) -> None:
        try:
            while not (self.is_given_up or self.executor.leaves(self)) and (job := self.executor.jobs.get()):
                if self.executor.leaves(self):
                    self.executor.jobs.put(job)
                    break
                self.enter(job)
                self.stopwatch.start(job)
                report = perform(job, self)
                with self.lock:
                    self.stopwatch.job = None
                    self.leave()
                    if not self.is_given_up:
                        self.executor.reports.put(report)
        finally:
            connections[DEFAULT_DB_ALIAS].close()

    def enter(self, job: Job) -> None:
        self.executor.isolation.enter(job.alone)
        self.admitted = job

    def leave(self) -> None:
        """Allow the jobs that wait for this one to begin. The caller holds the lock."""
        job, self.admitted = self.admitted, None
        if job:
            self.executor.isolation.leave(job.alone)

    def give_up(self) -> Overdue | None:
        """Return the job that takes longer than it may, if it does; what still comes of it is not reported."""
        with self.lock:
            overdue = self.stopwatch.look()
            self.is_given_up = overdue is not None
            if overdue:
                self.leave()
            return overdue

    def begin(self, attempt: int) -> None:
        with self.lock:
            if self.is_given_up:
                raise LeaseLost
            self.stopwatch.begin(attempt)

    # While its action is suspended.

    @contextmanager
    def vacated(self) -> Iterator[None]:
        job = self.admitted
        with self.stopwatch.stopped():
            with self.lock:
                self.leave()
            self.executor.stand_in()
            try:
                yield
            finally:
                self.executor.come_back()
            if job:
                self.enter(job)

    def wait(self, seconds: float) -> None:
        if self.executor.leaving.wait(seconds):
            raise LeaseLost


class Isolation:
    """Admit any number of shared jobs at once, or one job alone.

    A job that waits to be alone keeps further shared jobs from beginning.
    """

    def __init__(self) -> None:
        self.changed = Condition()
        self.shared = self.waiting = 0
        self.is_occupied = False

    def enter(self, alone: bool) -> None:
        """Wait until a job may begin."""
        with self.changed:
            if not alone:
                while self.is_occupied or self.waiting:
                    self.changed.wait()
                self.shared += 1
                return
            self.waiting += 1
            while self.is_occupied or self.shared:
                self.changed.wait()
            self.waiting -= 1
            self.is_occupied = True

    def leave(self, alone: bool) -> None:
        with self.changed:
            if alone:
                self.is_occupied = False
            else:
                self.shared -= 1
            self.changed.notify_all()
