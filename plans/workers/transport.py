"""The post between an applier and the workers: a thread for what is sent, and one for what comes back.

Neither ever has the applier wait. While the broker is away both try again, and tell when it is lost and back.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from queue import Empty
from queue import Queue as MessageQueue
from threading import Event, Thread
from typing import Any

import structlog
from django.db import connections
from kombu import Connection, Consumer, Exchange, Queue
from kombu.exceptions import OperationalError

from watcher_site.celery import app
from watcher_site.processes.worker import LOST_DATABASE

log = structlog.get_logger(__name__)
PAUSE = 1.0
TRANSPORT = Connection(transport="pyamqp")
BROKER_ERRORS = (*TRANSPORT.connection_errors, *TRANSPORT.channel_errors, OperationalError)
# How long the broker may take to confirm a message, how often it has to give a sign of life, and after how long a
# queue is thrown away that nobody reads; in seconds.
CONFIRMATION, HEARTBEAT, UNREAD = 10.0, 10, 600


class PostThread(Thread, ABC):
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
        if not self.is_missing:
            log.warning(what, post=self.name, problem=str(problem).strip())
        self.is_missing = True
        self.stopping.wait(PAUSE)

    @abstractmethod
    def attend(self, connection: Connection) -> None:
        """Do the thread's part, until it is to stop or the connection breaks."""

    def stop(self) -> None:
        self.stopping.set()


class Outbox(PostThread):
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


class Inbox(PostThread):
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
