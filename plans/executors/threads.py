"""The executor that runs jobs in threads of the applier's own process."""

from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from queue import Empty, Queue, SimpleQueue
from threading import Condition, Event, Lock, Thread

from django.db import DEFAULT_DB_ALIAS, connections

from actions.engine.leases import Slot
from actions.models import Action
from actions.types.base import LeaseLost
from plans.executors.base import HungJob, Job, Report, Stopwatch, run_job

# The only queue: all threads take jobs from it.
QUEUE = ""


class ThreadExecutor:
    """An executor with threads, each of which has its own database connection.

    The threads are daemons, so that a hung one does not keep the process from exiting. A thread whose action is
    suspended is substituted by another one; when the action is resumed, the next thread that is free ends.
    """

    def __init__(self, workers: int) -> None:
        self.size = workers
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()
        # Not a SimpleQueue: in CPython, a signal that interrupts its `get` can block it for ever.
        self.reports: Queue[Report] = Queue()
        self.stopping = Event()
        self.isolation = Isolation()
        self.lock = Lock()
        self.workers: list[WorkerThread] = []
        self.suspended = self.submitted = 0
        for _ in range(workers):
            self.start_thread()

    @property
    def slots(self) -> int:
        # One job waits behind each running one, so that no thread is idle until the main thread submits the next.
        return 2 * self.size + self.suspended

    def queue_of(self, action: Action) -> str:
        return QUEUE

    @property
    def free_queues(self) -> Set[str]:
        return {QUEUE} if self.submitted < self.slots else set()

    def are_stalled(self, actions: Set[int], queues: Set[str]) -> bool:
        return False

    def start_thread(self) -> None:
        worker = WorkerThread(self)
        self.workers.append(worker)
        worker.start()

    def start_substitute(self) -> None:
        """Start a thread as a substitute for one whose action is suspended."""
        with self.lock:
            self.suspended += 1
            self.start_thread()

    def end_substitution(self) -> None:
        with self.lock:
            self.suspended -= 1

    def end_if_surplus(self, worker: "WorkerThread") -> bool:
        """Remove a thread if there are more threads than slots, and return whether it was removed."""
        with self.lock:
            is_too_many = worker in self.workers and len(self.workers) > self.size + self.suspended
            if is_too_many:
                self.workers.remove(worker)
        return is_too_many

    def submit(self, job: Job) -> None:
        self.submitted += 1
        self.jobs.put(job)

    def track(self, job: Job) -> bool:
        return False

    def drop_plan(self, plan: int) -> None:
        """Do nothing: the threads stop at their next checkpoints, and report that."""

    def collect_reports(self, timeout: float) -> list[Report]:
        reports = []
        with suppress(Empty):
            reports.append(self.reports.get(timeout=timeout))
            while True:
                reports.append(self.reports.get_nowait())
        self.submitted -= len(reports)
        return reports

    def release_hung_jobs(self) -> list[HungJob]:
        found = [(worker, hung) for worker in list(self.workers) if (hung := worker.abandon_if_hung())]
        for worker, _ in found:
            with self.lock:
                self.workers.remove(worker)
                self.start_thread()
        self.submitted -= len(found)
        return [hung for _, hung in found]

    def withdraw(self) -> None:
        self.stopping.set()
        with suppress(Empty):
            while job := self.jobs.get_nowait():
                self.reports.put(Report(job, done=False))

    def stop(self) -> None:
        self.stopping.set()
        with self.lock:
            workers = list(self.workers)
        for _ in workers:
            self.jobs.put(None)
        for worker in workers:
            worker.join()


class WorkerThread(Thread, Slot):
    """A thread that runs one job after the other until it receives None, or until its job hangs."""

    def __init__(self, executor: ThreadExecutor) -> None:
        super().__init__(name="worker", daemon=True)
        self.executor = executor
        self.lock = Lock()
        self.stopwatch = Stopwatch()
        self.is_abandoned = False
        self.admitted_job: Job | None = None

    def run(self) -> None:
        try:
            while not (self.is_abandoned or self.executor.end_if_surplus(self)) and (job := self.executor.jobs.get()):
                if self.executor.end_if_surplus(self):
                    self.executor.jobs.put(job)
                    break
                self.enter_isolation(job)
                self.stopwatch.start(job)
                report = run_job(job, self)
                with self.lock:
                    self.stopwatch.job = None
                    self.leave_isolation()
                    if not self.is_abandoned:
                        self.executor.reports.put(report)
        finally:
            connections[DEFAULT_DB_ALIAS].close()

    def enter_isolation(self, job: Job) -> None:
        self.executor.isolation.acquire(job.alone)
        self.admitted_job = job

    def leave_isolation(self) -> None:
        """Allow the jobs that wait for this one to begin. The caller holds ``lock``."""
        job, self.admitted_job = self.admitted_job, None
        if job:
            self.executor.isolation.release(job.alone)

    def abandon_if_hung(self) -> HungJob | None:
        """Return the job of this thread if it is hung; the thread then reports nothing more, and ends."""
        with self.lock:
            hung = self.stopwatch.find_hung_job()
            self.is_abandoned = hung is not None
            if hung:
                self.leave_isolation()
            return hung

    def begin(self, attempt: int) -> None:
        with self.lock:
            if self.is_abandoned:
                raise LeaseLost
            self.stopwatch.begin(attempt)

    @contextmanager
    def vacated(self) -> Iterator[None]:
        job = self.admitted_job
        with self.stopwatch.stopped():
            with self.lock:
                self.leave_isolation()
            self.executor.start_substitute()
            try:
                yield
            finally:
                self.executor.end_substitution()
            if job:
                self.enter_isolation(job)

    def wait(self, seconds: float) -> None:
        if self.executor.stopping.wait(seconds):
            raise LeaseLost


class Isolation:
    """A lock that admits any number of shared jobs at once, or one job alone.

    A job that waits to run alone keeps further shared jobs from beginning.
    """

    def __init__(self) -> None:
        self.changed = Condition()
        self.shared = self.waiting = 0
        self.is_exclusive = False

    def acquire(self, alone: bool) -> None:
        """Wait until a job may begin, and count it as running."""
        with self.changed:
            if not alone:
                while self.is_exclusive or self.waiting:
                    self.changed.wait()
                self.shared += 1
                return
            self.waiting += 1
            while self.is_exclusive or self.shared:
                self.changed.wait()
            self.waiting -= 1
            self.is_exclusive = True

    def release(self, alone: bool) -> None:
        with self.changed:
            if alone:
                self.is_exclusive = False
            else:
                self.shared -= 1
            self.changed.notify_all()
