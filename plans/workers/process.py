"""One process of a worker: executes the actions of appliers' messages and those that become ready by these.

Its watchdog fails an action that exceeds its timeout, and exits the process.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Lock, Thread

import structlog
from django.conf import settings
from django.db import connection, connections

from actions.engine import execution
from actions.engine.leases import Slot
from actions.engine.timeouts import give_up
from actions.models import Action
from actions.queues import queue_of
from actions.types.base import LeaseLost
from plans.applier.readiness import next_released, rows_of
from plans.executors.base import Job, Report, Stopwatch, perform
from plans.executors.leases import PlanLease
from plans.workers.messages import WORKS, JobMessage, Reply, guard_values
from plans.workers.transport import Replies
from watcher_site.models import Service
from watcher_site.monitoring.metrics import leases_lost
from watcher_site.monitoring.server import serve_metrics
from watcher_site.processes.worker import LOST_DATABASE, Heartbeat
from watcher_site.refusals import Invalid

log = structlog.get_logger(__name__)


class WorkerProcess:
    """A worker process. Its service row is the lease on the action that it owns, as it may be killed at any moment."""

    def __init__(self, host: str, is_stopping: Callable[[], bool]) -> None:
        self.host, self.is_stopping = host, is_stopping
        self.heartbeat: Heartbeat | None = None
        self.replies = Replies()
        self.overtime = Overtime(self.leave_for_good, is_stopping)

    # Its row among the services.

    def begin(self) -> None:
        """Called in the process itself, once it was forked. Without a database it registers with its first action."""
        # The pool ends it: a signal to all of the service's processes is for the one that takes messages.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.overtime.start()
        try:
            serve_metrics(Service.WORKER)
        except Invalid as problem:
            log.warning("metrics are not served", reason=str(problem))
        with suppress(*LOST_DATABASE):
            self.register()

    def register(self) -> Service:
        """Return its row, and get a new one where it has none, or is not certain that it still has it."""
        if self.heartbeat and not self.heartbeat.holds:
            leases_lost.labels(Service.WORKER).inc()
            self.retire()
        if self.heartbeat is None:
            heartbeat = Heartbeat(Service.register(Service.WORKER, self.host))
            heartbeat.start()
            self.heartbeat = heartbeat
            log.info("worker started", service=heartbeat.service.pk, host=self.host)
        return self.heartbeat.service

    def retire(self) -> None:
        """End the lease, so that everything that the worker still owns is recovered."""
        heartbeat, self.heartbeat = self.heartbeat, None
        if heartbeat:
            heartbeat.stop()
            with suppress(*LOST_DATABASE):
                heartbeat.service.retire()

    def end(self) -> None:
        self.retire()
        connections.close_all()

    def leave_for_good(self) -> None:
        """End at once, whatever the main thread does: the pool starts another process."""
        try:
            self.retire()
        finally:
            os._exit(1)

    # The work.

    def take(self, message: JobMessage) -> None:
        """Do the job of a message, unless it comes too late, and go on for a while with actions that it made ready.

        Others' actions have to get their turn: after `settings.POLL_INTERVAL` the next message is read.
        """
        until = time.monotonic() + settings.POLL_INTERVAL
        try:
            lease = PlanLease(message.plan, message.applier, self.host, self.register().pk, message.request_id)
            action = self.find(message)
        except LOST_DATABASE as problem:
            connection.close()
            return self.reply(message, message.action, refused=True, problem=type(problem).__name__)
        if action is None:
            return self.reply(message, message.action)
        work = WORKS[message.work]
        while action:
            report = self.perform(Job(work, action, lease, execution.limit_of(action)))
            following = None if time.monotonic() > until else self.following(report, message)
            self.reply(
                message,
                action.pk,
                refused=not report.done,
                problem=type(report.error).__name__ if report.error else "",
                following=following.pk if following else None,
            )
            action, work = following, execution.execute
        return None

    def find(self, message: JobMessage) -> Action | None:
        action = rows_of([message.action]).get(message.action)
        return action if action and guard_values(action) == message.guards else None

    def perform(self, job: Job) -> Report:
        with self.overtime.watching(job):
            report = perform(job, self.overtime)
        if not report.done:
            self.release(job)
        return report

    def release(self, job: Job) -> None:
        """Release the action of a job if this worker still owns it, so that it is recovered at once."""
        try:
            Action.objects.filter(pk=job.action.pk).release(job.lease.owner)
        except LOST_DATABASE:
            connection.close()
            self.retire()

    def following(self, report: Report, message: JobMessage) -> Action | None:
        """Return what the end of an action released and this worker may go on with, if there is such an action."""
        action = report.job.action
        if not report.done or message.work == "revert" or action.state not in Action.FINAL or self.is_stopping():
            return None
        try:
            released = next_released(action)
            return released if released and queue_of(released) == message.queue else None
        except LOST_DATABASE:
            return None

    def reply(
        self, message: JobMessage, action: int, refused: bool = False, problem: str = "", following: int | None = None
    ) -> None:
        self.replies.send(message.reply_to, Reply(message.plan, action, refused, problem, following))


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
