"""The RabbitMQ server of the suite, a proxy that can interrupt its connections, and a URL without a broker."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from threading import Thread
from urllib.parse import urlsplit
from uuid import uuid4

from amqp.exceptions import NotFound
from django.test import override_settings
from kombu import Connection

from watcher_site.processes.broker import BrokerLost, require_broker

BROKER_URL = os.environ.get("WATCHER_TEST_BROKER_URL", "amqp://guest:guest@127.0.0.1:5672//")
NO_BROKER_URL = "amqp://watcher:secret@127.0.0.1:1//"


@cache
def broker_answers() -> bool:
    try:
        with override_settings(EXECUTOR="celery", CELERY_BROKER_URL=BROKER_URL):
            require_broker()
    except BrokerLost:
        return False
    return True


@contextmanager
def own_queues(*suffixes: str) -> Iterator[list[str]]:
    """Yield names of queues that no other run of the suite uses, and delete these queues in the end."""
    base = f"watcher-test-{uuid4()}"
    names = [base, *(f"{base}-{suffix}" for suffix in suffixes)]
    try:
        yield names
    finally:
        delete_queues(names)


def delete_queues(names: list[str]) -> None:
    """Delete queues with their messages; those that do not exist are ignored."""
    with Connection(BROKER_URL) as connection:
        for name in names:
            connection.channel().queue_delete(name)


def has_consumer(name: str) -> bool:
    """Return whether a process receives the messages of a queue; a queue that does not exist has none."""
    with Connection(BROKER_URL) as connection:
        try:
            return bool(connection.channel().queue_declare(name, passive=True).consumer_count)
        except NotFound:
            return False


class BrokerProxy:
    """A TCP proxy of the broker, for processes that lose their connections to it while others keep theirs."""

    def __init__(self) -> None:
        parts = urlsplit(BROKER_URL)
        self.broker = (parts.hostname or "127.0.0.1", parts.port or 5672)
        self.listener = self.listen(0)
        self.port = self.listener.getsockname()[1]
        self.pairs: list[tuple[socket.socket, socket.socket]] = []
        self.url = parts._replace(netloc=f"{parts.username}:{parts.password}@127.0.0.1:{self.port}").geturl()

    def listen(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port))
        Thread(target=self.accept, args=(listener,), daemon=True).start()
        return listener

    def accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(self.broker)
                self.pairs.append((near, far))
                for source, target in ((near, far), (far, near)):
                    Thread(target=self.forward, args=(source, target), daemon=True).start()

    @staticmethod
    def forward(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Close every connection, and refuse new connections."""
        # Closing the listener does not end a blocked accept.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        pairs, self.pairs = self.pairs, []
        for end in (end for pair in pairs for end in pair):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def restore(self) -> None:
        self.listener = self.listen(self.port)
