"""The executor that sends jobs to workers on other machines, as Celery tasks.

The result of a job is read from the database. A reply of a worker only makes the executor read it sooner. Jobs
without a reply are read once per `settings.POLL_INTERVAL`, and sent again if their messages were lost.
"""

import time
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from threading import Event
from typing import Any
from uuid import uuid4

import structlog
from django.conf import settings
from django.db import connection
from kombu import Connection

from actions.engine import execution
from actions.models import Action
from actions.queues import queue_of
from plans.applier.readiness import read_actions
from plans.executors.base import HungJob, Job, JobStarted, Report, WorkerError
from plans.executors.leases import PlanLease
from plans.workers.messages import TASK, JobMessage, Reply, guard_values
from plans.workers.transport import CONFIRMATION, MessageSender, QueuesWithoutWorkers, ReplyReceiver
from watcher_site.celery import app, make_queue, queue_names
from watcher_site.models import Service
from watcher_site.processes.worker import LOST_DATABASE

log = structlog.get_logger(__name__)


@dataclass(eq=False)
class Outstanding:
    """A job that was sent to the workers. Its action has these ``guards`` until a worker begins the job."""

    job: Job
    guards: list[Any]
    sent_at: float = inf
    since: float = field(default_factory=time.monotonic)


class CeleryExecutor:
    """An executor that sends jobs to workers, and reads the results from the database."""

    def __init__(self) -> None:
        self.jobs: dict[int, Outstanding] = {}
        self.occupied: Counter[str] = Counter()
        self.suspended: set[int] = set()
        self.waiting: dict[int, str] = {}
        self.leases: dict[int, PlanLease] = {}
        self.reports: list[Report | JobStarted] = []
        self.lost = Event()
        self.receiver = ReplyReceiver(f"{settings.CELERY_QUEUE}.replies.{uuid4()}", self.lost)
        self.unread = QueuesWithoutWorkers()
        self.sender = MessageSender(self.lost, self.send, self.check_queues)
        self.next_sweep = 0.0
        self.is_withdrawn = False
        self.receiver.start()
        self.sender.start()

    # Slots.

    def queue_of(self, action: Action) -> str:
        return queue_of(action)

    def slots_of(self, queue: str) -> int:
        suspended = sum(self.jobs[key].job.queue == queue for key in self.suspended & self.jobs.keys())
        return settings.CELERY_JOBS + suspended

    @property
    def free_queues(self) -> Set[str]:
        return {queue for queue in queue_names() if self.occupied[queue] < self.slots_of(queue)}

    def are_stalled(self, actions: Set[int], queues: Set[str]) -> bool:
        waited_in = set(self.waiting.values())
        return actions <= self.waiting.keys() and queues <= waited_in and not waited_in.issuperset(queue_names())

    # Sending.

    def submit(self, job: Job) -> None:
        self.enqueue(Outstanding(job, guard_values(job.action)))

    def enqueue(self, outstanding: Outstanding) -> None:
        outstanding.sent_at = inf
        self.add(outstanding)
        self.sender.put(outstanding)

    def add(self, outstanding: Outstanding) -> None:
        job = outstanding.job
        if job.action.pk in self.jobs:
            self.remove(job.action.pk)
        self.jobs[job.action.pk] = outstanding
        self.occupied[job.queue] += 1
        self.leases[job.lease.plan] = job.lease

    def remove(self, key: int) -> Outstanding:
        outstanding = self.jobs.pop(key)
        self.occupied[outstanding.job.queue] -= 1
        return outstanding

    def send(self, producer: Any, outstanding: Outstanding) -> None:
        """Send the message of a job, in the sender's thread, unless the job is no longer tracked."""
        job = outstanding.job
        if self.jobs.get(job.action.pk) is not outstanding:
            return
        message = JobMessage(
            work=job.work.__name__,
            action=job.action.pk,
            plan=job.lease.plan,
            applier=job.lease.applier,
            guards=outstanding.guards,
            queue=job.queue,
            reply_to=self.receiver.queue.name,
            request_id=job.lease.request_id,
            plan_uuid=job.lease.plan_uuid,
            traceparent=job.lease.traceparent,
        )
        app.send_task(
            TASK,
            kwargs=message.as_arguments(),
            queue=make_queue(job.queue),
            producer=producer,
            retry=False,
            expiration=settings.CELERY_RESEND,
            confirm_timeout=CONFIRMATION,
            ignore_result=True,
        )
        outstanding.sent_at = time.monotonic()

    def check_queues(self, connection: Connection) -> None:
        """Check that the queues with waiting actions have workers, in the sender's thread."""
        self.unread.check(connection, set(self.waiting.values()))

    def track(self, job: Job) -> bool:
        if not self.is_withdrawn:
            self.add(Outstanding(job, []))
        return not self.is_withdrawn

    # Results.

    def collect_reports(self, timeout: float) -> Sequence[Report | JobStarted]:
        replies = self.receiver.take(0 if self.reports or self.is_withdrawn else timeout)
        reports, self.reports = self.reports, []
        try:
            reports += self.read_results([Reply(**reply) for reply in replies])
            if time.monotonic() >= self.next_sweep:
                reports += self.sweep()
        except LOST_DATABASE as problem:
            # The next sweep reads the results of these replies.
            log.warning("database lost", problem=str(problem))
            connection.close()
        return reports

    def read_results(self, replies: Sequence[Reply]) -> Iterable[Report | JobStarted]:
        """Yield the results of the jobs of these replies, and the jobs that workers started by themselves."""
        replies = [reply for reply in replies if reply.plan in self.leases]
        keys = {reply.action for reply in replies} | {reply.next for reply in replies if reply.next}
        rows = read_actions(list(keys))
        for reply in replies:
            yield from self.read_result(rows.get(reply.action), reply)
            if reply.next in rows and reply.next not in self.jobs:
                yield self.track_started_job(rows[reply.next], self.leases[reply.plan])

    def read_result(self, action: Action | None, reply: Reply) -> Iterable[Report]:
        outstanding = self.jobs.get(reply.action)
        if outstanding is None:
            return
        report = self.result_of(outstanding, action, None)
        if report is None and reply.refused:
            problem = WorkerError(reply.problem) if reply.problem else None
            report = Report(outstanding.job, done=False, error=problem)
        if report:
            self.remove(reply.action)
            yield report

    def track_started_job(self, action: Action, lease: PlanLease) -> JobStarted:
        job = Job(execution.execute, action, lease, queue=queue_of(action))
        outstanding = Outstanding(job, guard_values(action), time.monotonic())
        if action.state != Action.State.PENDING:
            outstanding.guards = []
        self.add(outstanding)
        return JobStarted(job)

    def sweep(self) -> Iterable[Report]:
        """Read the results of jobs from the tables if no reply came in time."""
        now = time.monotonic()
        self.next_sweep = now + settings.POLL_INTERVAL
        keys = [key for key, outstanding in self.jobs.items() if outstanding.since <= now - settings.POLL_INTERVAL]
        if not keys:
            self.waiting = {}
            return
        rows = Action.objects.present().in_bulk(keys)
        self.suspended = {key for key, action in rows.items() if action.state == Action.State.SUSPENDED}
        self.waiting = {key: self.jobs[key].job.queue for key in rows if self.is_waiting(self.jobs[key], rows[key])}
        # Queried after the rows, so that a worker that took an action just before counts as alive.
        living = set(Service.objects.active().workers().values_list("pk", flat=True))
        for key in keys:
            report = self.result_of(self.jobs[key], rows.get(key), living)
            if report:
                self.remove(key)
                yield report
        self.resend_lost(rows)

    @staticmethod
    def is_waiting(outstanding: Outstanding, action: Action) -> bool:
        """Return whether the message of a job is with the broker, and no worker has begun the job."""
        return outstanding.sent_at < inf and guard_values(action) == outstanding.guards

    def result_of(self, outstanding: Outstanding, action: Action | None, living: set[int] | None) -> Report | None:
        """Return the result of a job from the row of its action, or None while it waits or is running."""
        if action is None:
            return Report(outstanding.job, done=False)
        if guard_values(action) == outstanding.guards:
            return None
        if action.owner_id is not None and (living is None or action.owner_id in living):
            return None
        job = replace(outstanding.job, action=action)
        # A suspended action without an owner stays suspended until it is resumed.
        return Report(job, done=action.state not in Action.BEGUN, is_abandoned=action.state in Action.UNDER_WAY)

    def resend_lost(self, rows: dict[int, Action]) -> None:
        """Send the jobs again that no worker began and whose messages are, or may be, lost."""
        was_lost = self.lost.is_set()
        self.lost.clear()
        latest = time.monotonic() - (0 if was_lost else settings.CELERY_RESEND)
        for key, outstanding in list(self.jobs.items()):
            if outstanding.sent_at <= latest and key in rows and guard_values(rows[key]) == outstanding.guards:
                # Its server may be in another zone by now, which has another queue.
                job = replace(outstanding.job, queue=queue_of(rows[key]))
                self.enqueue(Outstanding(job, outstanding.guards))

    # Release of jobs.

    def release_hung_jobs(self) -> list[HungJob]:
        """Return no jobs: the watchdog of each worker process fails hung ones."""
        return []

    def drop_plan(self, plan: int) -> None:
        self.leases.pop(plan, None)
        for key, outstanding in list(self.jobs.items()):
            if outstanding.job.lease.plan == plan:
                self.reports.append(Report(self.remove(key).job, done=False))

    def withdraw(self) -> None:
        self.is_withdrawn = True
        for plan in list(self.leases):
            self.drop_plan(plan)

    def stop(self) -> None:
        for thread in (self.sender, self.receiver):
            thread.stop()
        with suppress(RuntimeError):
            for thread in (self.sender, self.receiver):
                thread.join(CONFIRMATION)
