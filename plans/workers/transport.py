"""The transport between appliers and workers: the threads of an applier that use the broker, and replies of workers.

The main thread of the applier never waits for the broker. If the connection is lost, the threads log that once and
connect again. A lost reply only costs time: the applier reads the result of the job from the database later.
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
# The pause of a worker after it failed to send a reply, in seconds.
REPLY_PAUSE = 5.0
TRANSPORT = Connection(transport="pyamqp")
BROKER_ERRORS = (*TRANSPORT.connection_errors, *TRANSPORT.channel_errors, OperationalError)
# The timeout for confirmations of the broker, the interval of its heartbeats, and the time after which it deletes a
# queue for replies that has no reader; in seconds.
CONFIRMATION, HEARTBEAT, UNREAD = 10.0, 10, 600


class BrokerThread(Thread, ABC):
    """A thread that uses a connection to the broker, and opens a new one whenever it breaks."""

    def __init__(self, name: str, lost: Event) -> None:
        super().__init__(name=name, daemon=True)
        self.stopping, self.lost = Event(), lost
        self.is_lost = False

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                with self.connect() as connection:
                    self.serve(connection)
            except BROKER_ERRORS as problem:
                self.report_lost(problem)
            except LOST_DATABASE as problem:
                self.report_lost(problem, "database lost")
            except Exception as problem:
                # Continue: without this thread, the applier would wait for ever, and nothing would be logged.
                log.error("broker thread failed", thread=self.name, exc_info=problem)
                self.report_lost(problem)
        connections.close_all()

    def connect(self) -> Connection:
        connection: Connection = app.connection_for_write(heartbeat=HEARTBEAT)
        connection.connect()
        log.info("broker connected", thread=self.name)
        self.is_lost = False
        return connection

    def report_lost(self, problem: BaseException, event: str = "broker lost") -> None:
        # Messages in transit may be lost, so the executor sends them again.
        self.lost.set()
        broker_errors.labels("actions").inc()
        if not self.is_lost:
            log.warning(event, thread=self.name, problem=str(problem).strip())
        self.is_lost = True
        self.stopping.wait(PAUSE)

    @abstractmethod
    def serve(self, connection: Connection) -> None:
        """Use the connection until the thread is stopped or the connection breaks."""

    def stop(self) -> None:
        self.stopping.set()


class MessageSender(BrokerThread):
    """Sends messages in order, and keeps the first one that could not be sent for the next connection.

    It also calls ``check_queues`` once per heartbeat.
    """

    def __init__(
        self,
        lost: Event,
        send: Callable[[Any, Any], None],
        check_queues: Callable[[Connection], None] = lambda connection: None,
    ) -> None:
        super().__init__("message-sender", lost)
        self.check_queues, self.next_check = check_queues, 0.0
        # Not a SimpleQueue: in CPython, a signal that interrupts its `get` can block it for ever.
        self.messages: MessageQueue[Any] = MessageQueue()
        self.send = send
        self.unsent: Any = None

    def put(self, message: Any) -> None:
        self.messages.put(message)

    def serve(self, connection: Connection) -> None:
        producer = app.amqp.Producer(connection)
        while not self.stopping.is_set():
            if self.unsent is None:
                self.unsent = self.next_message(connection)
            if self.unsent is not None:
                self.send(producer, self.unsent)
                self.unsent = None
            if time.monotonic() >= self.next_check:
                self.next_check = time.monotonic() + HEARTBEAT
                self.check_queues(connection)

    def next_message(self, connection: Connection) -> Any:
        try:
            return self.messages.get(timeout=HEARTBEAT / 4)
        except Empty:
            # Read heartbeats of the broker: this thread consumes no queue in which they would be read.
            with suppress(TimeoutError):
                connection.drain_events(timeout=0.01)
            connection.heartbeat_check()
            return None

    def stop(self) -> None:
        super().stop()
        self.messages.put(None)


class ReplyReceiver(BrokerThread):
    """Receives the replies of workers from a queue of this applier."""

    def __init__(self, name: str, lost: Event) -> None:
        super().__init__("reply-receiver", lost)
        self.replies: MessageQueue[dict[str, Any]] = MessageQueue()
        self.queue = Queue(name, Exchange(""), routing_key=name, durable=False, auto_delete=True, expires=UNREAD)

    def serve(self, connection: Connection) -> None:
        with Consumer(connection, [self.queue], callbacks=[self.read], accept=["json"], no_ack=True):
            while not self.stopping.is_set():
                try:
                    connection.drain_events(timeout=PAUSE)
                except TimeoutError:
                    connection.heartbeat_check()

    def read(self, body: dict[str, Any], message: Any) -> None:
        self.replies.put(body)

    def take(self, timeout: float) -> list[dict[str, Any]]:
        """Return the replies since the last call, and wait for the first one up to ``timeout`` seconds."""
        replies = []
        try:
            replies.append(self.replies.get(timeout=timeout))
            while True:
                replies.append(self.replies.get_nowait())
        except Empty:
            return replies


class QueuesWithoutWorkers:
    """The queues that have waiting actions and no worker, according to the broker, and since when."""

    def __init__(self) -> None:
        self.since: dict[str, float] = {}
        self.reported: set[str] = set()

    def check(self, connection: Connection, queues: Iterable[str]) -> None:
        """Log a queue that has had no worker for `settings.SERVICE_DOWN_TIME`, and later that it has one again."""
        now = time.monotonic()
        unread = {queue for queue in queues if not count_readers(connection, queue)}
        self.since = {queue: self.since.get(queue, now) for queue in unread}
        for queue in self.reported - unread:
            log.info("queue has workers again, or no actions", queue=queue)
        self.reported &= unread
        for queue, since in self.since.items():
            if queue not in self.reported and now - since >= settings.SERVICE_DOWN_TIME:
                log.warning("actions wait in a queue without workers", queue=queue)
                self.reported.add(queue)


def count_readers(connection: Connection, queue: str) -> int:
    """Return the number of workers that consume a queue, and create the queue if it does not exist."""
    with connection.channel() as channel:
        return int(make_queue(queue)(channel).queue_declare().consumer_count)


class ReplySender:
    """Sends the replies of a worker process over its own connection, which the first reply opens."""

    def __init__(self) -> None:
        self.producer: Producer | None = None
        self.not_before = 0.0

    def send(self, queue: str, reply: Reply) -> None:
        if time.monotonic() < self.not_before:
            return
        try:
            self.publish(queue, asdict(reply))
        except BROKER_ERRORS:
            # The broker may have closed an idle connection. The next reply opens a new one.
            self.producer, self.not_before = None, time.monotonic() + REPLY_PAUSE

    def publish(self, queue: str, body: dict[str, Any]) -> None:
        if self.producer is None:
            connection: Connection = app.connection_for_write(transport_options={}, heartbeat=0)
            self.producer = Producer(connection.channel())
        self.producer.publish(body, exchange="", routing_key=queue, serializer="json", delivery_mode="transient")
