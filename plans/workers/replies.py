"""Replies of workers to appliers. They only save time: lost replies are replaced by reading the tables later."""

import time
from dataclasses import asdict
from typing import Any

from kombu import Connection, Producer

from plans.workers.messages import Reply
from plans.workers.transport import BROKER_ERRORS
from watcher_site.celery import app

# Without a broker it is not tried again at once, in seconds.
PAUSE = 5.0


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
            self.producer, self.not_before = None, time.monotonic() + PAUSE

    def publish(self, queue: str, body: dict[str, Any]) -> None:
        if self.producer is None:
            connection: Connection = app.connection_for_write(transport_options={}, heartbeat=0)
            self.producer = Producer(connection.channel())
        self.producer.publish(body, exchange="", routing_key=queue, serializer="json", delivery_mode="transient")
