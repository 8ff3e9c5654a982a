"""Publishes many messages at once to RabbitMQ, on the connections of oslo.messaging's driver.

Where brokers are, TLS, passwords, heartbeats and reconnection are that driver's, with all options of a transport URL.
It awaits what the broker says of a message before it writes the next; this awaits it once for all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog
from amqp import ChannelError, ContentTooLarge, PreconditionFailed
from django.conf import settings
from kombu import Exchange
from oslo_messaging._drivers.common import PURPOSE_SEND
from oslo_messaging._drivers.impl_rabbit import Connection, RabbitDriver

from watcher_site.notifications.rabbitmq.confirms import Confirms
from watcher_site.notifications.rabbitmq.messages import default_queue, persistent_message
from watcher_site.notifications.receivers import Undelivered, Unreachable

log = structlog.get_logger(__name__)
# Once more on a new connection, as the broker may have closed the kept one.
RETRIES = 1
# How often queues are declared anew when the broker gives a message back, as someone has deleted its queue.
REDECLARATIONS = 1
REFUSED = "The broker refused it."


@dataclass
class Batch:
    """Messages, as pairs of a queue and a body, and what became of each: by its place, None once the broker has it."""

    messages: Sequence[tuple[str, bytes]]
    results: dict[int, Undelivered | Unreachable | None] = field(default_factory=dict)
    objection: ChannelError | None = None
    """Why the broker closed the channel on some of these, of which it does not say which."""

    @property
    def open(self) -> list[int]:
        return [place for place in range(len(self.messages)) if place not in self.results]


class Publisher:
    """Publishes messages to RabbitMQ in one thread."""

    def __init__(self, driver: RabbitDriver, exchange: str) -> None:
        self.driver, self.exchange = driver, Exchange(exchange)
        self.confirms: Confirms | None = None

    def publish(self, messages: Sequence[tuple[str, bytes]]) -> list[Undelivered | Unreachable | None]:
        """Publish messages, and return what became of each: None, if the broker has it.

        Args:
            messages: the queue and the body of each.
        """
        batch = Batch(messages)
        try:
            self.attempt(batch)
            if batch.objection:
                self.publish_singly(batch)
        except Exception as problem:
            # What the transport says names hosts and users: it is for the log.
            log.warning("broker did not take a notification", reason=str(problem).strip())
            silence = Unreachable("The broker does not answer.")
            batch.results.update(dict.fromkeys(batch.open, silence))
        return [batch.results[place] for place in range(len(messages))]

    def publish_singly(self, batch: Batch) -> None:
        """Find out of the messages that are open which it is that the broker objects to."""
        for place in batch.open:
            single = Batch([batch.messages[place]])
            self.attempt(single)
            if isinstance(single.objection, PreconditionFailed | ContentTooLarge):
                single.results[0] = Undelivered(REFUSED)
            elif single.objection:
                raise single.objection
            batch.results[place] = single.results[0]

    def attempt(self, batch: Batch) -> None:
        """Write what is open of a batch, on a new connection if the kept one is broken, and note what becomes of it.

        Raises:
            Exception: whatever the transport raises.
        """
        with self.driver._get_connection(PURPOSE_SEND, RETRIES) as held:
            connection: Connection = held.connection
            connection._ensure_publishing(lambda *_: self.write(connection, batch), self.exchange, None, retry=RETRIES)
            if batch.objection:
                with connection._connection_lock:
                    # The broker closed the channel: the next are written to another.
                    connection.ensure_connection()

    def write(self, connection: Connection, batch: Batch) -> None:
        confirms = self.confirms_of(connection)
        for _ in range(1 + REDECLARATIONS):
            self.declare(connection, confirms, batch)
            try:
                self.write_open(confirms, batch, connection.kombu_compression)
            except ChannelError as objection:
                batch.objection = objection
            finally:
                self.note(confirms, batch)
            if batch.objection or not batch.open:
                return
        raise RuntimeError("No queue takes a message, though it was declared.")

    def confirms_of(self, connection: Connection) -> Confirms:
        if self.confirms is None or self.confirms.channel is not connection.channel:
            self.confirms = Confirms(connection.channel)
        return self.confirms

    def declare(self, connection: Connection, confirms: Confirms, batch: Batch) -> None:
        """Make the queues that are not there, lest messages go nowhere while nobody has listened yet."""
        for name in {batch.messages[place][0] for place in batch.open} - confirms.declared:
            default_queue(connection, self.exchange.name, name)(connection.channel).declare()
            confirms.declared.add(name)

    def write_open(self, confirms: Confirms, batch: Batch, compression: str | None) -> None:
        for place in batch.open:
            queue, body = batch.messages[place]
            confirms.write(place, self.exchange.name, queue, persistent_message(body, compression))
        confirms.await_all(settings.WEBHOOK_TIMEOUT)

    def note(self, confirms: Confirms, batch: Batch) -> None:
        """Note what the broker said. What no queue took stays open, to be written again once the queue is declared."""
        told = confirms.collect()
        confirms.declared -= told.unrouted
        batch.results.update((place, Undelivered(REFUSED)) for place in told.refused)
        batch.results.update((place, None) for place in told.taken if batch.messages[place][0] not in told.unrouted)
