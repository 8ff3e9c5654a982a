"""Publishes many messages at once to RabbitMQ.

The answers of the broker to a whole batch are awaited at once, and a broken connection is replaced once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog
from amqp import ChannelError, ContentTooLarge, PreconditionFailed, RecoverableConnectionError
from django.conf import settings

from watcher_site.notifications.rabbitmq.confirms import Confirms
from watcher_site.notifications.rabbitmq.connections import KeptConnection
from watcher_site.notifications.rabbitmq.messages import default_queue
from watcher_site.notifications.receivers import Undelivered, Unreachable

log = structlog.get_logger(__name__)
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

    def __init__(self, connection: KeptConnection) -> None:
        self.connection = connection

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
            self.connection.close()
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
        """Write the open messages of a batch, once more on a new connection if the kept one is broken.

        Raises:
            Exception: whatever the transport raises.
        """
        try:
            self.write(batch)
        except (RecoverableConnectionError, OSError):
            self.connection.close()
            self.write(batch)

    def write(self, batch: Batch) -> None:
        confirms = self.connection.channel()
        for _ in range(1 + REDECLARATIONS):
            self.declare(confirms, batch)
            try:
                self.write_open(confirms, batch)
            except ChannelError as objection:
                batch.objection = objection
            finally:
                self.note(confirms, batch)
            if batch.objection:
                # The broker closed the channel.
                self.connection.close()
                return
            if not batch.open:
                return
        raise RuntimeError("No queue takes a message, though it was declared.")

    def declare(self, confirms: Confirms, batch: Batch) -> None:
        """Make the queues that are not there, lest messages go nowhere while nobody has listened yet."""
        for name in {batch.messages[place][0] for place in batch.open} - confirms.declared:
            default_queue(self.connection.options, self.connection.exchange, name)(confirms.channel).declare()
            confirms.declared.add(name)

    def write_open(self, confirms: Confirms, batch: Batch) -> None:
        for place in batch.open:
            confirms.write(place, *batch.messages[place])
        confirms.await_all(settings.WEBHOOK_TIMEOUT)

    def note(self, confirms: Confirms, batch: Batch) -> None:
        """Note the answers. A message that no queue took stays open, until its queue is declared again."""
        answers = confirms.collect()
        confirms.declared -= answers.unrouted
        batch.results.update((place, Undelivered(REFUSED)) for place in answers.refused)
        routed = (place for place in answers.taken if batch.messages[place][0] not in answers.unrouted)
        batch.results.update(dict.fromkeys(routed))
