"""Faults of a message broker: duplicated, reordered and lost messages."""

import time
from random import Random
from threading import Thread
from typing import Any

from kombu import Connection
from kombu.exceptions import OperationalError

from tests.chaos.broker import OwnBroker


class MessageDuplicator:
    """Takes messages from a queue and publishes each of them twice, at the end of the queue."""

    def __init__(self, broker: OwnBroker, queue: str, random: Random) -> None:
        self.broker, self.queue, self.random = broker, queue, random
        self.duplicated = 0

    def run(self) -> None:
        try:
            with Connection(self.broker.url, connect_timeout=2) as connection:
                self.duplicate_messages(connection.channel())
        except (*connection.connection_errors, *connection.channel_errors, OperationalError):
            # The queue does not exist yet, or the broker was just killed.
            return

    def duplicate_messages(self, channel: Any) -> None:
        while self.random.random() < 0.8 and (message := channel.basic_get(self.queue)):
            for _ in range(2):
                channel.basic_publish(message, exchange="", routing_key=self.queue)
            channel.basic_ack(message.delivery_tag)
            self.duplicated += 1


class BrokerFaults:
    """Kills a broker about once in ``kill_interval`` seconds, and duplicates messages in between."""

    def __init__(self, broker: OwnBroker, queue: str, seed: int, kill_interval: float = 20) -> None:
        self.random = Random(seed)  # noqa: S311 (no secret)
        self.broker, self.kill_interval = broker, kill_interval
        self.duplicator = MessageDuplicator(broker, queue, self.random)
        self.next_kill = time.monotonic() + kill_interval / 3
        self.kill_thread: Thread | None = None

    def cause(self) -> None:
        """Cause a fault at random, unless the broker is being restarted. Called many times a second."""
        if self.kill_thread and self.kill_thread.is_alive():
            return
        if time.monotonic() > self.next_kill:
            # The broker takes seconds to start, during which processes are still killed.
            self.kill_thread = Thread(target=self.kill_broker)
            self.kill_thread.start()
        elif self.random.random() < 0.1:
            self.duplicator.run()

    def kill_broker(self) -> None:
        self.broker.kill()
        self.next_kill = time.monotonic() + self.random.uniform(0.5, 1.5) * self.kill_interval

    def finish(self) -> None:
        """Wait until the broker is running."""
        if self.kill_thread:
            self.kill_thread.join()
