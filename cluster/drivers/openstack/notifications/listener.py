"""The listener: the process that receives the notifications of Nova and Cinder and writes what they say.

A message is acknowledged after its change is committed. A process that dies in between receives it again, which does
no harm: the row then has its time already. While the database does not answer, messages go back to the queue.
"""

import re
import time as clock
from collections.abc import Iterable, Mapping
from datetime import datetime
from importlib import import_module
from threading import Event
from typing import Any
from warnings import filterwarnings

import structlog
from django.conf import settings
from django.db import connection
from django.utils import timezone

from cluster.drivers.openstack.notifications.events import CINDER, NOVA, Handler
from cluster.drivers.openstack.notifications.payloads import UnusablePayload, notification_time, parse_time
from cluster.synchronization.rows import UNFIT, describe_conflict
from watcher_site.models import Service
from watcher_site.models.services import LATE
from watcher_site.monitoring.metrics import broker_errors, database_errors
from watcher_site.processes.worker import NOT_OF_ONE_RECORD, Worker
from watcher_site.refusals import Refused

log = structlog.get_logger(__name__)
# How often, in seconds, the queue is looked at.
LOOK_PERIOD = 10
# How many kinds of unusable payloads are remembered, so that each is logged once.
MOST_KINDS = 1000
# What oslo.messaging calls the two results of an endpoint (`NotificationResult`).
HANDLED, REQUEUE = "handled", "requeue"
NO_ANSWER, NO_RIGHT = "The broker does not answer.", "The broker refuses the login or the queue."


def import_transport() -> Any:
    """Import what only the extra [openstack] brings."""
    # oslo.messaging still imports Eventlet, and uses nothing of it: that it is out of date is no news to operators.
    filterwarnings("ignore", message=r"\s*Eventlet is deprecated")
    return import_module("cluster.drivers.openstack.notifications.transport")


class Progress:
    """The numbers of messages that were handled and skipped, and the time of the newest. One thread writes it."""

    def __init__(self) -> None:
        self.handled = self.skipped = 0
        # Before the first message, the time since when there could have been one.
        self.newest = timezone.now()
        self.current: datetime | None = None
        self.logged: set[str] = set()

    def skip(self, event: str, problem: Exception, kind: str) -> None:
        """Count a message that cannot be used, and log the first of its kind."""
        self.skipped += 1
        if kind not in self.logged and len(self.logged) < MOST_KINDS:
            self.logged.add(kind)
            log.warning("notification skipped", event_type=event, reason=str(problem))

    def lag(self, is_behind: bool) -> float:
        """Return by how many seconds the tables are behind the cloud: 0 if no message is being handled or waits.

        Args:
            is_behind: whether messages wait in the queue, and did so at the look before.
        """
        oldest = self.current or (self.newest if is_behind else None)
        return max(0.0, (timezone.now() - oldest).total_seconds()) if oldest else 0.0


class Endpoint:
    """The notifications of one service, for the listener of oslo.messaging, which calls it in one thread."""

    def __init__(self, handlers: Mapping[str, Handler], progress: Progress, stopping: Event) -> None:
        self.handlers, self.progress, self.stopping = handlers, progress, stopping
        # The attribute that oslo.messaging reads; what does not match is acknowledged unread.
        events = "|".join(map(re.escape, handlers))
        self.filter_rule = import_transport().make_filter(f"^({events})$")

    def info(self, context: Any, publisher: str, event: str, payload: Any, metadata: Mapping[str, Any]) -> str:
        return self.receive(event, payload, metadata.get("timestamp"))

    warn = error = info

    def receive(self, event: str, payload: Any, timestamp: Any) -> str:
        """Write what one notification says, and return whether it goes back to the queue.

        Only an error of the database sends it back: one that cannot be used is counted and skipped.
        """
        progress = self.progress
        try:
            progress.current = parse_time(timestamp, "timestamp")
            self.handlers[event](payload, notification_time(timestamp))
        except NOT_OF_ONE_RECORD as problem:
            database_errors.labels("notification").inc()
            log.warning("database lost", problem=str(problem))
            connection.close()
            self.stopping.wait(settings.POLL_INTERVAL)
            progress.current = None
            return REQUEUE
        except UnusablePayload as problem:
            progress.skip(event, problem, f"{event} {problem.kind}")
        except UNFIT as problem:
            progress.skip(event, ValueError(describe_conflict(problem)), f"{event} {type(problem).__name__}")
        except Exception as problem:
            log.exception("notification failed", event_type=event)
            progress.skip(event, problem, f"{event} {type(problem).__name__}")
        progress.handled += 1
        progress.newest = progress.current or progress.newest
        progress.current = None
        return HANDLED


class Listener(Worker):
    """One process's share of the notifications; listeners with the same pool share the messages.

    oslo.messaging calls the endpoints in one thread, in the order of the queue; the loop reports the progress.
    """

    kind = Service.LISTENER

    def __init__(self, host: str | None = None) -> None:
        self.progress = Progress()
        self.wake = Event()
        self.server: Any = None
        self.broker: Any = None
        self.waiting: int | None = None
        self.is_behind = False
        self.problem: str | None = None
        self.next_look = 0.0
        self.late = False
        super().__init__(host)

    @property
    def is_idle(self) -> bool:
        return False

    def prepare(self) -> None:
        self.broker = import_transport().CloudBroker()

    def step(self) -> None:
        if self.heartbeat.lost:
            self.renew()
        if self.server is None:
            self.connect()
        elif clock.monotonic() >= self.next_look:
            self.next_look = clock.monotonic() + LOOK_PERIOD
            self.look()
        self.report()

    def connect(self) -> None:
        """Begin to receive, if the broker answers.

        Raises:
            Refused: it refuses the login or the queue.
        """
        try:
            self.broker.require_rights()
        except import_transport().LOST as problem:
            self.note_problem(problem)
            return
        self.problem = None
        endpoints: Iterable[Endpoint] = [Endpoint(table, self.progress, self.wake) for table in (NOVA, CINDER)]
        self.server = self.broker.make_listener(endpoints)
        # One thread keeps the order of the queue, with one connection to the database.
        self.server.start(override_pool_size=1)
        self.log.info("listening", pool=settings.CLOUD_NOTIFICATION_POOL, topics=settings.CLOUD_NOTIFICATION_TOPICS)

    def look(self) -> None:
        """Count the messages that wait; oslo.messaging connects anew by itself."""
        try:
            before, self.waiting, self.problem = self.waiting, self.broker.count_waiting(), None
            # A message that has just come may be counted before it is received.
            self.is_behind = bool(before and self.waiting)
        except Refused as problem:
            self.note_problem(problem, NO_RIGHT)
        except import_transport().LOST as problem:
            self.note_problem(problem)

    def note_problem(self, problem: Exception, text: str = NO_ANSWER) -> None:
        broker_errors.labels("cloud").inc()
        # What the transport says names hosts and users: it is for the log.
        if self.problem is None:
            self.log.warning("broker of the cloud lost", reason=str(problem).strip())
        self.waiting, self.is_behind, self.problem = None, False, text

    def report(self) -> None:
        lag = self.progress.lag(self.is_behind)
        if self.late != (lag > LATE):
            self.late = not self.late
            say = self.log.warning if self.late else self.log.info
            say("listener lags" if self.late else "listener caught up", seconds=round(lag), waiting=self.waiting)
        self.service.report(lag, self.progress.handled, self.progress.skipped, self.problem)

    def rest(self) -> None:
        clock.sleep(settings.POLL_INTERVAL)

    def await_database(self) -> None:
        clock.sleep(settings.POLL_INTERVAL)

    def stop(self) -> None:
        """Finish the message that is being handled; those that were received and not begun go back to the queue."""
        self.wake.set()
        if self.server is not None:
            self.server.stop()
            self.server.wait()
        super().stop()
