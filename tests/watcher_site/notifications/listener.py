"""The listener of oslo.messaging, at the RabbitMQ server of the suite."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any
from uuid import uuid4

import oslo_messaging
from kombu import Connection
from oslo_config.cfg import ConfigOpts

from tests.broker import BROKER_URL

TRANSPORT_URL = BROKER_URL.replace("amqp://", "rabbit://").removesuffix("/")
PRIORITIES = ("info", "warn", "error")


class Endpoint:
    """An endpoint that stores the messages of each priority: publisher id, event type, payload and metadata.

    Their contexts are stored in the order of all messages.
    """

    def __init__(self) -> None:
        self.contexts: list[dict[str, Any]] = []
        self.heard: dict[str, list[tuple[str, str, dict[str, Any], dict[str, Any]]]] = defaultdict(list)
        self.lock = Lock()

    def hear(self, priority: str, ctxt: Any, publisher: str, event: str, payload: Any, metadata: Any) -> None:
        with self.lock:
            self.contexts.append(ctxt)
            self.heard[priority].append((publisher, event, payload, metadata))

    def info(self, ctxt: Any, publisher: str, event: str, payload: Any, metadata: Any) -> None:
        self.hear("info", ctxt, publisher, event, payload, metadata)

    def warn(self, ctxt: Any, publisher: str, event: str, payload: Any, metadata: Any) -> None:
        self.hear("warn", ctxt, publisher, event, payload, metadata)

    def error(self, ctxt: Any, publisher: str, event: str, payload: Any, metadata: Any) -> None:
        self.hear("error", ctxt, publisher, event, payload, metadata)


@contextmanager
def listening() -> Iterator[tuple[str, Endpoint]]:
    """Listen to a new topic, and yield its name and its endpoint; its queues are deleted in the end."""
    topic, endpoint = f"watcher-test-{uuid4()}", Endpoint()
    conf = ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    transport = oslo_messaging.get_notification_transport(conf, TRANSPORT_URL)
    listener = oslo_messaging.get_notification_listener(
        transport, [oslo_messaging.Target(topic=topic)], [endpoint], executor="threading"
    )
    listener.start()
    try:
        yield topic, endpoint
    finally:
        listener.stop()
        listener.wait()
        transport.cleanup()
        with Connection(BROKER_URL) as connection:
            for priority in PRIORITIES:
                connection.channel().queue_delete(f"{topic}.{priority}")
