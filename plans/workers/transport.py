"""The transport between appliers and workers: threads of the applier that send and receive, and replies of workers.

The threads never keep the applier waiting. While the broker is away they try again, and log when it is lost and back.
Replies only save time: lost replies are replaced by reading the tables later.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from queue import Empty
from queue import Queue as MessageQueue
from threading import Event, Thread
from typing import Any

import structlog
from django.conf import settings
from django.db import connections
from kombu import Connection, Consumer, Exchange, Producer, Queue
from kombu.exceptions import OperationalError

from plans.workers.messages import Reply
from watcher_site.celery import app, make_queue
from watcher_site.monitoring.metrics import broker_errors
from watcher_site.processes.worker import LOST_DATABASE

log = structlog.get_logger(__name__)
PAUSE = 1.0
# Without a broker it is not tried again at once, in seconds.
REPLY_PAUSE = 5.0
TRANSPORT = Connection(transport="pyamqp")
BROKER_ERRORS = (*TRANSPORT.connection_errors, *TRANSPORT.channel_errors, OperationalError)
# How long the broker may take to confirm a message, how often it has to give a sign of life, and after how long a
# queue is thrown away that nobody reads; in seconds.
CONFIRMATION, HEARTBEAT, UNREAD = 10.0, 10, 600


class BrokerThread(Thread, ABC):
    """Does its part as long as there is a connection, and gets a new one whenever that breaks."""

    def __init__(self, name: str, lost: Event) -> None:
        super().__init__(name=name, daemon=True)
        self.stopping, self.lost = Event(), lost
        self.is_missing = False

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                with self.connect() as connection:
                    self.attend(connection)
            except BROKER_ERRORS as problem:
                self.miss(problem)
            except LOST_DATABASE as problem:
                self.miss(problem, "database lost")
            except Exception as problem:
                # Without its post an applier would wait for ever, and nobody would know.
                log.error("post failed", post=self.name, exc_info=problem)
                self.miss(problem)
        connections.close_all()

    def connect(self) -> Connection:
        connection: Connection = app.connection_for_write(heartbeat=HEARTBEAT)
        connection.connect()
        log.info("broker connected", post=self.name)
        self.is_missing = False
        return connection

    def miss(self, problem: BaseException, what: str = "broker lost") -> None:
        # What was on its way may be lost with it.
        self.lost.set()
        broker_errors.labels("actions").inc()
        if not self.is_missing:
            log.warning(what, post=self.name, problem=str(problem).strip())
        self.is_missing = True
        self.stopping.wait(PAUSE)

    @abstractmethod
    def attend(self, connection: Connection) -> None:
        """Do the thread's part, until it is to stop or the connection breaks."""

    def stop(self) -> None:
        self.stopping.set()


class Outbox(BrokerThread):
    """Sends what it is given, in order, and keeps what it could not send. Now and then it has a look at the broker."""

    def __init__(
        self,
        lost: Event,
        send: Callable[[Any, Any], None],
        look: Callable[[Connection], None] = lambda connection: None,
    ) -> None:
        super().__init__("outbox", lost)
        self.look, self.next_look = look, 0.0
        # No SimpleQueue: a signal that interrupts its `get` may have it wait for ever (CPython).
        self.messages: MessageQueue[Any] = MessageQueue()
        self.send = send
        self.unsent: Any = None

    def put(self, message: Any) -> None:
        self.messages.put(message)

    def attend(self, connection: Connection) -> None:
        producer = app.amqp.Producer(connection)
        while not self.stopping.is_set():
            if self.unsent is None:
                self.unsent = self.next_message(connection)
            if self.unsent is not None:
                self.send(producer, self.unsent)
                self.unsent = None
            if time.monotonic() >= self.next_look:
                self.next_look = time.monotonic() + HEARTBEAT
                self.look(connection)

    def next_message(self, connection: Connection) -> Any:
        try:
            return self.messages.get(timeout=HEARTBEAT / 4)
        except Empty:
            # Its signs of life are read here, where nothing else is.
            with suppress(TimeoutError):
                connection.drain_events(timeout=0.01)
            connection.heartbeat_check()
            return None

    def stop(self) -> None:
        super().stop()
        self.messages.put(None)


class Inbox(BrokerThread):
    """Reads the replies out of a queue of its own."""

    def __init__(self, name: str, lost: Event) -> None:
        super().__init__("inbox", lost)
        self.replies: MessageQueue[dict[str, Any]] = MessageQueue()
        self.queue = Queue(name, Exchange(""), routing_key=name, durable=False, auto_delete=True, expires=UNREAD)

    def attend(self, connection: Connection) -> None:
        with Consumer(connection, [self.queue], callbacks=[self.read], accept=["json"], no_ack=True):
            while not self.stopping.is_set():
                try:
                    connection.drain_events(timeout=PAUSE)
                except TimeoutError:
                    connection.heartbeat_check()

    def read(self, body: dict[str, Any], message: Any) -> None:
        self.replies.put(body)

    def take(self, timeout: float) -> list[dict[str, Any]]:
        """Return what came since the last call, waiting so many seconds for the first one."""
        replies = []
        try:
            replies.append(self.replies.get(timeout=timeout))
            while True:
                replies.append(self.replies.get_nowait())
        except Empty:
            return replies


class UnreadQueues:
    """Since when each queue in which something waits has had no worker, by what the broker says."""

    def __init__(self) -> None:
        self.since: dict[str, float] = {}
        self.reported: set[str] = set()

    def look(self, connection: Connection, queues: Iterable[str]) -> None:
        """Warn once of each that has had no worker for `settings.SERVICE_DOWN_TIME`, and say when it has one again."""
        now = time.monotonic()
        unread = {queue for queue in queues if not count_readers(connection, queue)}
        self.since = {queue: self.since.get(queue, now) for queue in unread}
        for queue in self.reported - unread:
            log.info("queue is read again, or nothing waits in it", queue=queue)
        self.reported &= unread
        for queue, since in self.since.items():
            if queue not in self.reported and now - since >= settings.SERVICE_DOWN_TIME:
                log.warning("actions wait in a queue that no worker reads", queue=queue)
                self.reported.add(queue)


def count_readers(connection: Connection, queue: str) -> int:
    """Return how many workers take actions out of a queue, which is made if there is none."""
    with connection.channel() as channel:
        return int(make_queue(queue)(channel).queue_declare().consumer_count)


class Replies:
    """A process's own connection for what it writes back, made when the first reply is sent."""

    def __init__(self) -> None:
        self.producer: Producer | None = None
        self.not_before = 0.0

    def send(self, queue: str, reply: Reply) -> None:
        if time.monotonic() < self.not_before:
            return
        try:
            self.publish(queue, asdict(reply))
        except BROKER_ERRORS:
            # One that stood idle may have been closed; a new one is made for the next reply.
            self.producer, self.not_before = None, time.monotonic() + REPLY_PAUSE

    def publish(self, queue: str, body: dict[str, Any]) -> None:
        if self.producer is None:
            connection: Connection = app.connection_for_write(transport_options={}, heartbeat=0)
            self.producer = Producer(connection.channel())
        self.producer.publish(body, exchange="", routing_key=queue, serializer="json", delivery_mode="transient")
