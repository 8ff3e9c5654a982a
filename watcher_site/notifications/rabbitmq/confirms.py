"""Publisher confirms: the broker's answer to each message that was written to one of its channels.

As RabbitMQ has them (https://www.rabbitmq.com/docs/confirms): messages count from 1, and one answer may
be for all up to it. kombu's own transport option ``confirm_publish`` awaits each answer before the next message is
written, a round trip for each; this awaits the answers to many messages at once.
"""

from dataclasses import dataclass, field
from typing import Any

from kombu import Connection, Producer


@dataclass
class Answers:
    """The broker's answers by the marks of messages; for an unrouted message, the queue that it was addressed to."""

    taken: set[Any] = field(default_factory=set)
    refused: set[Any] = field(default_factory=set)
    unrouted: set[str] = field(default_factory=set)


class Confirms:
    """A channel in confirm mode. A written message stands in `awaited` until the broker answers."""

    def __init__(self, connection: Connection, exchange: str, compression: str | None) -> None:
        self.connection, self.channel = connection, connection.channel()
        self.exchange, self.compression = exchange, compression
        self.producer = Producer(self.channel, auto_declare=False, on_return=self.on_return)
        self.declared: set[str] = set()
        self.written = 0
        self.awaited: dict[int, Any] = {}
        self.answers = Answers()
        self.channel.confirm_select()
        self.channel.events["basic_ack"].add(self.on_ack)
        self.channel.events["basic_nack"].add(self.on_nack)

    def write(self, mark: Any, queue: str, body: bytes) -> None:
        """Write a persistent message under a mark, which identifies it in the answers.

        The broker returns it if no queue takes it.
        """
        self.written += 1
        self.awaited[self.written] = mark
        self.producer.publish(
            body,
            queue,
            exchange=self.exchange,
            mandatory=True,
            content_type="application/json",
            content_encoding="utf-8",
            compression=self.compression,
        )

    def await_all(self, timeout: float) -> None:
        """Wait until the broker has answered for all messages.

        Raises:
            TimeoutError: it did not answer for so many seconds.
            amqp.AMQPError, OSError: it closed the channel, or the connection broke.
        """
        while self.awaited:
            self.connection.drain_events(timeout=timeout)

    def collect(self) -> Answers:
        """Return the answers since the last call, and stop waiting for the others."""
        answers, self.answers = self.answers, Answers()
        self.awaited.clear()
        return answers

    def on_ack(self, tag: int, multiple: bool) -> None:
        self.settle(tag, multiple, self.answers.taken)

    def on_nack(self, tag: int, multiple: bool) -> None:
        self.settle(tag, multiple, self.answers.refused)

    def on_return(self, problem: Exception, exchange: str, routing_key: str, message: Any) -> None:
        # It is acknowledged all the same, later.
        self.answers.unrouted.add(routing_key)

    def settle(self, tag: int, multiple: bool, into: set[Any]) -> None:
        answered = [one for one in self.awaited if one <= tag] if multiple else [tag]
        into.update(self.awaited.pop(one) for one in answered)
