"""The listener, which receives the notifications of Nova and Cinder and writes their changes.

A message is acknowledged after the commit of its change. If the process dies in between, another one receives the
message again, without effect: the row has the time of the notification. If the database does not respond, messages
return to the queue.
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
from cluster.messages import BROKER_REFUSES_ACCESS
from cluster.synchronization.rows import CONFLICTS, describe_conflict
from watcher_site.models import Service
from watcher_site.models.services import LATE
from watcher_site.monitoring.metrics import broker_errors, database_errors
from watcher_site.notifications.messages import BROKER_DOES_NOT_ANSWER
from watcher_site.processes.worker import NOT_OF_ONE_RECORD, Worker
from watcher_site.refusals import Refused

log = structlog.get_logger(__name__)
# Seconds between checks of the queue.
QUEUE_CHECK_INTERVAL = 10
# The number of kinds of unusable payloads that are remembered, so that each is logged once.
MAX_LOGGED_KINDS = 1000
# The results of an endpoint in oslo.messaging (`NotificationResult`).
HANDLED, REQUEUE = "handled", "requeue"
NO_ANSWER, ACCESS_REFUSED = BROKER_DOES_NOT_ANSWER.text, BROKER_REFUSES_ACCESS.text


def import_transport() -> Any:
    """Return the module `transport`, which requires the extra [openstack]."""
    # oslo.messaging imports Eventlet without using it, so its deprecation does not concern operators.
    filterwarnings("ignore", message=r"\s*Eventlet is deprecated")
    return import_module("cluster.drivers.openstack.notifications.transport")


class Progress:
    """The numbers of handled and skipped messages, and the time of the newest. Only one thread writes it."""

    def __init__(self) -> None:
        self.handled = self.skipped = 0
        # Before the first message: the start of the process.
        self.newest = timezone.now()
        self.current: datetime | None = None
        self.logged: set[str] = set()

    def skip(self, event: str, problem: Exception, kind: str) -> None:
        """Count a message that cannot be used, and log it if it is the first of its kind."""
        self.skipped += 1
        if kind not in self.logged and len(self.logged) < MAX_LOGGED_KINDS:
            self.logged.add(kind)
            log.warning("notification skipped", event_type=event, reason=str(problem))

    def lag(self, is_behind: bool) -> float:
        """Return the delay of the tables behind the cloud in seconds, 0 if no message is in progress or waiting.

        Args:
            is_behind: whether messages waited in the queue at the last two checks.
        """
        oldest = self.current or (self.newest if is_behind else None)
        return max(0.0, (timezone.now() - oldest).total_seconds()) if oldest else 0.0


class Endpoint:
    """The receiver of one service's notifications, which the listener of oslo.messaging calls in one thread."""

    def __init__(self, handlers: Mapping[str, Handler], progress: Progress, stopping: Event) -> None:
        self.handlers, self.progress, self.stopping = handlers, progress, stopping
        # oslo.messaging acknowledges messages that do not match this attribute.
        events = "|".join(map(re.escape, handlers))
        self.filter_rule = import_transport().make_filter(f"^({events})$")

    def info(self, context: Any, publisher: str, event: str, payload: Any, metadata: Mapping[str, Any]) -> str:
        return self.receive(event, payload, metadata.get("timestamp"))

    warn = error = info

    def receive(self, event: str, payload: Any, timestamp: Any) -> str:
        """Write the change of one notification, and return whether the message returns to the queue.

        Only an error of the database returns it. A message that cannot be used is counted and skipped.
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
        except CONFLICTS as problem:
            progress.skip(event, ValueError(describe_conflict(problem)), f"{event} {type(problem).__name__}")
        except Exception as problem:
            log.exception("notification failed", event_type=event)
            progress.skip(event, problem, f"{event} {type(problem).__name__}")
        progress.handled += 1
        progress.newest = progress.current or progress.newest
        progress.current = None
        return HANDLED


class Listener(Worker):
    """The listener process; listeners with the same pool share the messages.

    oslo.messaging calls the endpoints in one thread, in the order of the queue. The loop reports the progress.
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
        self.next_check = 0.0
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
        elif clock.monotonic() >= self.next_check:
            self.next_check = clock.monotonic() + QUEUE_CHECK_INTERVAL
            self.check_queue()
        self.report()

    def connect(self) -> None:
        """Start receiving, if the broker responds.

        Raises:
            Refused: the broker refuses the login or the queue.
        """
        try:
            self.broker.require_rights()
        except import_transport().LOST as problem:
            self.record_problem(problem)
            return
        self.problem = None
        endpoints: Iterable[Endpoint] = [Endpoint(table, self.progress, self.wake) for table in (NOVA, CINDER)]
        self.server = self.broker.make_listener(endpoints)
        # One thread keeps the order of the queue, and uses one connection to the database.
        self.server.start(override_pool_size=1)
        self.log.info("listening", pool=settings.CLOUD_NOTIFICATION_POOL, topics=settings.CLOUD_NOTIFICATION_TOPICS)

    def check_queue(self) -> None:
        """Count the waiting messages. oslo.messaging restores its own connection."""
        try:
            before, self.waiting, self.problem = self.waiting, self.broker.count_waiting(), None
            # Two counts, because a new message may be counted before it is received.
            self.is_behind = bool(before and self.waiting)
        except Refused as problem:
            self.record_problem(problem, ACCESS_REFUSED)
        except import_transport().LOST as problem:
            self.record_problem(problem)

    def record_problem(self, problem: Exception, text: str = NO_ANSWER) -> None:
        broker_errors.labels("cloud").inc()
        # The message of the transport contains hosts and users, so only the log has it.
        if self.problem is None:
            self.log.warning("broker of the cloud lost", reason=str(problem).strip())
        self.waiting, self.is_behind, self.problem = None, False, text

    def report(self) -> None:
        lag = self.progress.lag(self.is_behind)
        if self.late != (lag > LATE):
            self.late = not self.late
            log_lag = self.log.warning if self.late else self.log.info
            log_lag("listener lags" if self.late else "listener caught up", seconds=round(lag), waiting=self.waiting)
        self.service.report(lag, self.progress.handled, self.progress.skipped, self.problem)

    def rest(self) -> None:
        clock.sleep(settings.POLL_INTERVAL)

    def await_database(self) -> None:
        clock.sleep(settings.POLL_INTERVAL)

    def stop(self) -> None:
        """Finish the current message. Other received messages return to the queue."""
        self.wake.set()
        if self.server is not None:
            self.server.stop()
            self.server.wait()
        super().stop()
