"""Publisher confirms: what a broker said of each message that was written to one of its channels.

As RabbitMQ has them (https://www.rabbitmq.com/docs/confirms): messages count from 1, and one answer may
be for all up to it.
"""

from dataclasses import dataclass, field
from typing import Any

from amqp import Channel, Message, spec

SIGNATURE = "Bssbb"


@dataclass
class Answers:
    """The broker's answers by the marks of messages; for an unrouted message, the queue that it was addressed to."""

    taken: set[Any] = field(default_factory=set)
    refused: set[Any] = field(default_factory=set)
    unrouted: set[str] = field(default_factory=set)


class Confirms:
    """One channel in confirm mode. What is written to it stands in `awaited` until the broker tells of it."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.declared: set[str] = set()
        self.written = 0
        self.awaited: dict[int, Any] = {}
        self.told = Answers()
        channel.confirm_select()
        channel.events["basic_ack"].add(self.on_ack)
        channel.events["basic_nack"].add(self.on_nack)
        # In the place of oslo.messaging's, which raises at the first.
        channel.events["basic_return"] = {self.on_return}

    def write(self, mark: Any, exchange: str, routing_key: str, message: Message) -> None:
        """Write a message under a mark, which identifies it in the answers.

        The broker returns it if no queue takes it.
        """
        self.written += 1
        self.awaited[self.written] = mark
        self.channel.send_method(spec.Basic.Publish, SIGNATURE, (0, exchange, routing_key, True, False), message)

    def await_all(self, timeout: float) -> None:
        """Wait until the broker has answered for all messages.

        Raises:
            TimeoutError: it was silent for so many seconds.
            amqp.AMQPError, OSError: it closed the channel, or the connection broke.
        """
        while self.awaited:
            self.channel.connection.drain_events(timeout=timeout)

    def collect(self) -> Answers:
        """Return the answers since the last call, and stop waiting for the others."""
        told, self.told = self.told, Answers()
        self.awaited.clear()
        return told

    def on_ack(self, tag: int, multiple: bool) -> None:
        self.settle(tag, multiple, self.told.taken)

    def on_nack(self, tag: int, multiple: bool) -> None:
        self.settle(tag, multiple, self.told.refused)

    def on_return(self, problem: Exception, exchange: str, routing_key: str, message: Any) -> None:
        # It is acknowledged all the same, later.
        self.told.unrouted.add(routing_key)

    def settle(self, tag: int, multiple: bool, into: set[Any]) -> None:
        told = [one for one in self.awaited if one <= tag] if multiple else [tag]
        into.update(self.awaited.pop(one) for one in told)
