"""A publisher of batches of messages to RabbitMQ, in the format of oslo.messaging's rabbit driver (18.3).

The broker's responses to a whole batch are awaited at once, and a broken connection is replaced once.

The sources of the format, in the package oslo_messaging: `_drivers/common.py` (serialize_msg), `_drivers/amqp.py`
(_add_unique_id, pack_context) and `_drivers/impl_rabbit.py` (notify_send, _publish_and_creates_default_queue,
_get_queue_arguments).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import orjson
import structlog
from amqp import ChannelError, ContentTooLarge, PreconditionFailed, RecoverableConnectionError
from django.conf import settings
from kombu import Exchange, Queue

from watcher_site.notifications.messages import BROKER_DOES_NOT_ANSWER, BROKER_REFUSED
from watcher_site.notifications.rabbitmq.connections import Confirms, KeptConnection
from watcher_site.notifications.receivers import Undelivered, Unreachable

log = structlog.get_logger(__name__)
# The number of times that queues are declared again if the broker returns a message, because its queue was deleted.
REDECLARATIONS = 1
ENVELOPE_VERSION = "2.0"


@dataclass
class Batch:
    """Messages, as pairs of a queue and a body, with the result of each by index: None if the broker accepted it."""

    messages: Sequence[tuple[str, bytes]]
    results: dict[int, Undelivered | Unreachable | None] = field(default_factory=dict)
    objection: ChannelError | None = None
    """The reason why the broker closed the channel; it does not identify the message."""

    @property
    def open(self) -> list[int]:
        return [place for place in range(len(self.messages)) if place not in self.results]


class Publisher:
    """Publishes messages to RabbitMQ in one thread."""

    def __init__(self, connection: KeptConnection) -> None:
        self.connection = connection

    def publish(self, messages: Sequence[tuple[str, bytes]]) -> list[Undelivered | Unreachable | None]:
        """Publish messages, and return the result of each: None if the broker accepted it, or an error.

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
            # The message of the transport names hosts and users, and is only logged.
            log.warning("broker did not take a notification", reason=str(problem).strip())
            problem_of_all = Unreachable(BROKER_DOES_NOT_ANSWER.text)
            batch.results.update(dict.fromkeys(batch.open, problem_of_all))
        return [batch.results[place] for place in range(len(messages))]

    def publish_singly(self, batch: Batch) -> None:
        """Publish the open messages one by one, to find the one that the broker refuses."""
        for place in batch.open:
            single = Batch([batch.messages[place]])
            self.attempt(single)
            if isinstance(single.objection, PreconditionFailed | ContentTooLarge):
                single.results[0] = Undelivered(BROKER_REFUSED.text)
            elif single.objection:
                raise single.objection
            batch.results[place] = single.results[0]

    def attempt(self, batch: Batch) -> None:
        """Write the open messages of a batch, and again on a new connection if the kept one is broken.

        Raises:
            Exception: any error of the transport.
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
                self.record_answers(confirms, batch)
            if batch.objection:
                # The broker has closed the channel.
                self.connection.close()
                return
            if not batch.open:
                return
        raise RuntimeError("No queue takes a message, though it was declared.")

    def declare(self, confirms: Confirms, batch: Batch) -> None:
        """Create missing queues, so that messages are kept that are sent before the first listener starts."""
        for name in {batch.messages[place][0] for place in batch.open} - confirms.declared:
            default_queue(self.connection.options, self.connection.exchange, name)(confirms.channel).declare()
            confirms.declared.add(name)

    def write_open(self, confirms: Confirms, batch: Batch) -> None:
        for place in batch.open:
            confirms.write(place, *batch.messages[place])
        confirms.await_all(settings.WEBHOOK_TIMEOUT)

    def record_answers(self, confirms: Confirms, batch: Batch) -> None:
        """Record the responses. A message that was not routed stays open until its queue is declared again."""
        answers = confirms.collect()
        confirms.declared -= answers.unrouted
        batch.results.update((place, Undelivered(BROKER_REFUSED.text)) for place in answers.refused)
        routed = (place for place in answers.taken if batch.messages[place][0] not in answers.unrouted)
        batch.results.update(dict.fromkeys(routed))


def envelope(message: dict[str, Any], context: Mapping[str, Any] | None = None) -> bytes:
    """Return the body for a message with a context.

    Each transmission has its own id, by which listeners recognize messages that the broker delivers twice.

    Raises:
        TypeError: a part of the message is not JSON.
    """
    packed = {f"_context_{name}": value for name, value in (context or {}).items()}
    inner = orjson.dumps({**message, **packed, "_unique_id": uuid4().hex}).decode()
    return orjson.dumps({"oslo.version": ENVELOPE_VERSION, "oslo.message": inner})


def default_queue(options: Any, exchange: str, name: str) -> Queue:
    """Return the queue that a notifier declares if it is missing, bound to its exchange under its own name.

    Args:
        options: those of oslo.messaging's rabbit driver.
    """
    durability = {
        "durable": options.amqp_durable_queues or options.rabbit_quorum_queue,
        "auto_delete": options.amqp_auto_delete,
    }
    return Queue(
        name,
        exchange=Exchange(exchange, type="topic", **durability),
        routing_key=name,
        queue_arguments=queue_arguments(options),
        **durability,
    )


def queue_arguments(options: Any) -> dict[str, Any]:
    """Return the arguments for declaring a queue.

    Raises:
        ValueError: options contradict each other.
    """
    if options.rabbit_quorum_queue and options.rabbit_ha_queues:
        raise ValueError("rabbit_quorum_queue and rabbit_ha_queues exclude each other.")
    if options.rabbit_ha_queues:
        return {"x-ha-policy": "all"}
    if not options.rabbit_quorum_queue:
        return {}
    limits = {
        "x-delivery-limit": options.rabbit_quorum_delivery_limit,
        "x-max-in-memory-length": options.rabbit_quorum_max_memory_length,
        "x-max-in-memory-bytes": options.rabbit_quorum_max_memory_bytes,
    }
    return {"x-queue-type": "quorum", **{name: limit for name, limit in limits.items() if limit}}
