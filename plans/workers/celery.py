"""The side of many machines: each job is a Celery task, which any worker may take.

The tables are the truth. A reply only has this executor look at an action sooner; what no reply comes for is looked
at once per `settings.POLL_INTERVAL`, and sent again where its message must be lost.
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
from plans.applier.readiness import rows_of
from plans.executors.base import Beginning, Job, Overdue, Report, WorkerTrouble
from plans.executors.leases import PlanLease
from plans.workers.messages import TASK, JobMessage, Reply, guard_values
from plans.workers.transport import CONFIRMATION, Inbox, Outbox, UnreadQueues
from watcher_site.celery import app, make_queue, queue_names
from watcher_site.models import Service
from watcher_site.processes.worker import LOST_DATABASE

log = structlog.get_logger(__name__)


@dataclass(eq=False)
class Outstanding:
    """A job that is with the workers. Its action has these ``guards`` until a worker begins the job."""

    job: Job
    guards: list[Any]
    sent_at: float = inf
    since: float = field(default_factory=time.monotonic)


class CeleryExecutor:
    """Sends jobs to workers, and reports what the tables say became of them."""

    def __init__(self) -> None:
        self.jobs: dict[int, Outstanding] = {}
        self.taken: Counter[str] = Counter()
        self.suspended: set[int] = set()
        self.waiting: dict[int, str] = {}
        self.leases: dict[int, PlanLease] = {}
        self.reports: list[Report | Beginning] = []
        self.lost = Event()
        self.inbox = Inbox(f"{settings.CELERY_QUEUE}.replies.{uuid4()}", self.lost)
        self.unread = UnreadQueues()
        self.outbox = Outbox(self.lost, self.send, self.look_at_queues)
        self.next_sweep = 0.0
        self.is_leaving = False
        self.inbox.start()
        self.outbox.start()

    # Slots.

    def queue_of(self, action: Action) -> str:
        return queue_of(action)

    def slots_of(self, queue: str) -> int:
        suspended = sum(self.jobs[key].job.queue == queue for key in self.suspended & self.jobs.keys())
        return settings.CELERY_JOBS + suspended

    @property
    def free_queues(self) -> Set[str]:
        return {queue for queue in queue_names() if self.taken[queue] < self.slots_of(queue)}

    def stalls(self, actions: Set[int], queues: Set[str]) -> bool:
        waited_in = set(self.waiting.values())
        return actions <= self.waiting.keys() and queues <= waited_in and not waited_in.issuperset(queue_names())

    # Out.

    def submit(self, job: Job) -> None:
        self.put(Outstanding(job, guard_values(job.action)))

    def put(self, outstanding: Outstanding) -> None:
        outstanding.sent_at = inf
        self.add(outstanding)
        self.outbox.put(outstanding)

    def add(self, outstanding: Outstanding) -> None:
        job = outstanding.job
        if job.action.pk in self.jobs:
            self.remove(job.action.pk)
        self.jobs[job.action.pk] = outstanding
        self.taken[job.queue] += 1
        self.leases[job.lease.plan] = job.lease

    def remove(self, key: int) -> Outstanding:
        outstanding = self.jobs.pop(key)
        self.taken[outstanding.job.queue] -= 1
        return outstanding

    def send(self, producer: Any, outstanding: Outstanding) -> None:
        """Called by the outbox, in its thread. What is no longer awaited is left out."""
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
            reply_to=self.inbox.queue.name,
            request_id=job.lease.request_id,
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

    def look_at_queues(self, connection: Connection) -> None:
        """Called by the outbox as well."""
        self.unread.look(connection, set(self.waiting.values()))

    def follow(self, job: Job) -> bool:
        if not self.is_leaving:
            self.add(Outstanding(job, []))
        return not self.is_leaving

    # Back.

    def finished(self, timeout: float) -> Sequence[Report | Beginning]:
        replies = self.inbox.take(0 if self.reports or self.is_leaving else timeout)
        reports, self.reports = self.reports, []
        try:
            reports += self.read([Reply(**reply) for reply in replies])
            if time.monotonic() >= self.next_sweep:
                reports += self.sweep()
        except LOST_DATABASE as problem:
            # What came is looked at with all the rest, when it is back.
            log.warning("database lost", problem=str(problem))
            connection.close()
        return reports

    def read(self, replies: Sequence[Reply]) -> Iterable[Report | Beginning]:
        """Look at what workers have done with, and note what they went on with by themselves."""
        replies = [reply for reply in replies if reply.plan in self.leases]
        keys = {reply.action for reply in replies} | {reply.next for reply in replies if reply.next}
        rows = rows_of(list(keys))
        for reply in replies:
            yield from self.look(rows.get(reply.action), reply)
            if reply.next in rows and reply.next not in self.jobs:
                yield self.note_beginning(rows[reply.next], self.leases[reply.plan])

    def look(self, action: Action | None, reply: Reply) -> Iterable[Report]:
        outstanding = self.jobs.get(reply.action)
        if outstanding is None:
            return
        report = self.judge(outstanding, action, None)
        if report is None and reply.refused:
            problem = WorkerTrouble(reply.problem) if reply.problem else None
            report = Report(outstanding.job, done=False, error=problem)
        if report:
            self.remove(reply.action)
            yield report

    def note_beginning(self, action: Action, lease: PlanLease) -> Beginning:
        job = Job(execution.execute, action, lease, queue=queue_of(action))
        outstanding = Outstanding(job, guard_values(action), time.monotonic())
        if action.state != Action.State.PENDING:
            outstanding.guards = []
        self.add(outstanding)
        return Beginning(job)

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
        self.waiting = {key: self.jobs[key].job.queue for key in rows if self.waits(self.jobs[key], rows[key])}
        # Queried after the rows, so that a worker that took an action just before counts as alive.
        living = set(Service.objects.active().workers().values_list("pk", flat=True))
        for key in keys:
            report = self.judge(self.jobs[key], rows.get(key), living)
            if report:
                self.remove(key)
                yield report
        self.send_again(rows)

    @staticmethod
    def waits(outstanding: Outstanding, action: Action) -> bool:
        """Return whether the message of a job is with the broker, and no worker has begun the job."""
        return outstanding.sent_at < inf and guard_values(action) == outstanding.guards

    def judge(self, outstanding: Outstanding, action: Action | None, living: set[int] | None) -> Report | None:
        """Return the result of a job from the row of its action, or None while it waits or is running."""
        if action is None:
            return Report(outstanding.job, done=False)
        if guard_values(action) == outstanding.guards:
            return None
        if action.owner_id is not None and (living is None or action.owner_id in living):
            return None
        job = replace(outstanding.job, action=action)
        # What is suspended in nobody's hands stays so, until it is recalled.
        return Report(job, done=action.state not in Action.BEGUN, is_abandoned=action.state in Action.UNDER_WAY)

    def send_again(self, rows: dict[int, Action]) -> None:
        """Send what nobody has begun with, where its message must be lost, or may be."""
        was_lost = self.lost.is_set()
        self.lost.clear()
        latest = time.monotonic() - (0 if was_lost else settings.CELERY_RESEND)
        for key, outstanding in list(self.jobs.items()):
            if outstanding.sent_at <= latest and key in rows and guard_values(rows[key]) == outstanding.guards:
                # What it acts on may be in another zone by now.
                job = replace(outstanding.job, queue=queue_of(rows[key]))
                self.put(Outstanding(job, outstanding.guards))

    # The end.

    def give_up(self) -> list[Overdue]:
        """Each worker gives up on what takes too long by itself."""
        return []

    def forget(self, plan: int) -> None:
        self.leases.pop(plan, None)
        for key, outstanding in list(self.jobs.items()):
            if outstanding.job.lease.plan == plan:
                self.reports.append(Report(self.remove(key).job, done=False))

    def withdraw(self) -> None:
        self.is_leaving = True
        for plan in list(self.leases):
            self.forget(plan)

    def stop(self) -> None:
        for thread in (self.outbox, self.inbox):
            thread.stop()
        with suppress(RuntimeError):
            for thread in (self.outbox, self.inbox):
                thread.join(CONFIRMATION)
