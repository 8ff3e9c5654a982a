"""A worker process: it runs the jobs that appliers send, and the actions that become ready when these end.

Its watchdog fails an action that exceeds its timeout without stopping, and exits the process.
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
from actions.engine.timeouts import fail_hung_action
from actions.models import Action
from actions.queues import queue_of
from actions.types.base import LeaseLost
from plans.applier.readiness import find_released_child, read_actions
from plans.executors.base import Job, Report, Stopwatch, run_job
from plans.executors.leases import PlanLease
from plans.workers.messages import WORKS, JobMessage, Reply, guard_values
from plans.workers.transport import ReplySender
from watcher_site.models import Service
from watcher_site.monitoring.metrics import leases_lost
from watcher_site.monitoring.server import serve_metrics
from watcher_site.monitoring.tracing import tracing
from watcher_site.processes.worker import LOST_DATABASE, Heartbeat
from watcher_site.refusals import Invalid

log = structlog.get_logger(__name__)


class WorkerProcess:
    """A worker process. The lease on its current action is its service row, because it may be killed at any moment."""

    def __init__(self, host: str, is_stopping: Callable[[], bool]) -> None:
        self.host, self.is_stopping = host, is_stopping
        self.heartbeat: Heartbeat | None = None
        self.replies = ReplySender()
        self.watchdog = Watchdog(self.exit_process, is_stopping)

    def start(self) -> None:
        """Prepare the process after its fork. If the database is away, it registers with its first job."""
        # The Celery pool stops this process. A signal to the process group is meant for the parent process.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.watchdog.start()
        try:
            serve_metrics(Service.WORKER)
        except Invalid as problem:
            log.warning("metrics are not served", reason=str(problem))
        try:
            tracing.start(Service.WORKER)
        except Invalid as problem:
            log.warning("traces are not sent", reason=str(problem))
        with suppress(*LOST_DATABASE):
            self.register()

    def register(self) -> Service:
        """Return the service row of this process, and replace it by a new one if its lease may have expired."""
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
        """End the lease, so that the action that this worker still owns is recovered."""
        heartbeat, self.heartbeat = self.heartbeat, None
        if heartbeat:
            heartbeat.stop()
            with suppress(*LOST_DATABASE):
                heartbeat.service.retire()

    def stop(self) -> None:
        self.retire()
        connections.close_all()
        tracing.stop()

    def exit_process(self) -> None:
        """Exit without waiting for the main thread. The Celery pool starts another process."""
        try:
            self.retire()
        finally:
            os._exit(1)

    def handle(self, message: JobMessage) -> None:
        """Run the job of a message unless it is out of date, and then actions that became ready by its end.

        After `settings.POLL_INTERVAL` seconds it starts no further action, so that other messages are handled.
        """
        until = time.monotonic() + settings.POLL_INTERVAL
        try:
            lease = PlanLease(
                message.plan,
                message.applier,
                self.host,
                self.register().pk,
                message.request_id,
                message.plan_uuid,
                message.traceparent,
            )
            action = self.find(message)
        except LOST_DATABASE as problem:
            connection.close()
            return self.reply(message, message.action, refused=True, problem=type(problem).__name__)
        if action is None:
            return self.reply(message, message.action)
        work = WORKS[message.work]
        while action:
            report = self.perform(Job(work, action, lease, execution.limit_of(action)))
            following = None if time.monotonic() > until else self.next_action(report, message)
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
        action = read_actions([message.action]).get(message.action)
        return action if action and guard_values(action) == message.guards else None

    def perform(self, job: Job) -> Report:
        with self.watchdog.watching(job):
            report = run_job(job, self.watchdog)
        if not report.done:
            self.release(job)
        return report

    def release(self, job: Job) -> None:
        """Release the action of a job if this worker still owns it, so that it is recovered immediately."""
        try:
            Action.objects.filter(pk=job.action.pk).release(job.lease.owner)
        except LOST_DATABASE:
            connection.close()
            self.retire()

    def next_action(self, report: Report, message: JobMessage) -> Action | None:
        """Return an action that became ready by the end of another one, or None. It has the same queue."""
        action = report.job.action
        if not report.done or message.work == "revert" or action.state not in Action.FINAL or self.is_stopping():
            return None
        try:
            released = find_released_child(action)
            return released if released and queue_of(released) == message.queue else None
        except LOST_DATABASE:
            return None

    def reply(
        self, message: JobMessage, action: int, refused: bool = False, problem: str = "", following: int | None = None
    ) -> None:
        self.replies.send(message.reply_to, Reply(message.plan, action, refused, problem, following))


class Watchdog(Thread, Slot):
    """A thread that fails the job of its process and exits the process when the job is hung.

    A suspended action occupies its process, and its timeout does not run meanwhile.
    """

    def __init__(self, exit_process: Callable[[], None], is_stopping: Callable[[], bool]) -> None:
        super().__init__(name="watchdog", daemon=True)
        self.exit_process, self.is_stopping = exit_process, is_stopping
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
        # While the watchdog fails the job, this blocks until the process exits.
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
            self.check()

    def check(self) -> None:
        """Fail the job if it is hung, and exit the process.

        An error of the site itself is logged and also exits the process: nothing else watches the job.
        """
        with self.lock:
            hung = self.stopwatch.find_hung_job()
            if hung is None:
                return
            job = hung.job
            log.error("action given up", action=str(job.action.uuid), seconds=job.limit)
            try:
                fail_hung_action(job.action, job.lease, attempt=hung.attempt, has_begun=hung.has_begun)
            except LOST_DATABASE:
                connection.close()
                return
            except Exception as problem:
                log.error("hung action could not be failed", action=str(job.action.uuid), exc_info=problem)
            self.exit_process()
