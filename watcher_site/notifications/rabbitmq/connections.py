"""A persistent connection to RabbitMQ, and the broker's confirms of the messages that are written to its channel.

The connection is kombu's, with the brokers and options of an oslo.messaging transport URL. The broker's responses are
publisher confirms (https://www.rabbitmq.com/docs/confirms): messages count from 1, and one response may be for all
messages up to a number. kombu's own option ``confirm_publish`` waits for each response before the next message is
written, which takes a round trip per message; this waits for the responses to many messages at once.
"""

import random
import ssl
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import oslo_messaging
from django.conf import settings
from kombu import Connection, Producer
from oslo_config.cfg import ConfigOpts
from oslo_messaging.opts import list_opts

GROUP = "oslo_messaging_rabbit"
PORT = 5672
TLS_VERSIONS = {
    name.removeprefix("PROTOCOL_").lower(): getattr(ssl, name) for name in dir(ssl) if name.startswith("PROTOCOL_")
}


@dataclass
class Answers:
    """The broker's responses by message. The response for an unrouted message is the queue to which it was sent."""

    taken: set[Any] = field(default_factory=set)
    refused: set[Any] = field(default_factory=set)
    unrouted: set[str] = field(default_factory=set)


class Confirms:
    """A channel in confirm mode. Messages are in `awaited` until the broker responds."""

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
        """Write a persistent message with a mark that identifies it in the responses.

        The broker returns it if no queue accepts it.
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
        """Wait until the broker has responded for all messages.

        Raises:
            TimeoutError: it did not respond within ``timeout`` seconds.
            amqp.AMQPError, OSError: it closed the channel, or the connection was lost.
        """
        while self.awaited:
            self.connection.drain_events(timeout=timeout)

    def collect(self) -> Answers:
        """Return the responses since the last call, and stop waiting for others."""
        answers, self.answers = self.answers, Answers()
        self.awaited.clear()
        return answers

    def on_ack(self, tag: int, multiple: bool) -> None:
        self.settle(tag, multiple, self.answers.taken)

    def on_nack(self, tag: int, multiple: bool) -> None:
        self.settle(tag, multiple, self.answers.refused)

    def on_return(self, problem: Exception, exchange: str, routing_key: str, message: Any) -> None:
        # The broker acknowledges it nevertheless, later.
        self.answers.unrouted.add(routing_key)

    def settle(self, tag: int, multiple: bool, into: set[Any]) -> None:
        answered = [one for one in self.awaited if one <= tag] if multiple else [tag]
        into.update(self.awaited.pop(one) for one in answered)


def make_configuration() -> ConfigOpts:
    """Return a configuration of oslo.messaging that reads no files."""
    configuration = ConfigOpts()
    configuration([], project="watcher", default_config_files=[], default_config_dirs=[])
    return configuration


class KeptConnection:
    """A connection for one thread, opened on demand and closed after it was idle for some time.

    Raises:
        oslo_config.cfg.Error, ValueError: the URL has an unknown option, or an invalid value of one.
    """

    def __init__(self, url: str) -> None:
        configuration = make_configuration()
        self.url = oslo_messaging.TransportURL.parse(configuration, url)
        configuration.register_opts(dict(list_opts())[GROUP], GROUP)
        for name, value in self.url.query.items():
            configuration.set_override(name, value, GROUP)
        self.options = configuration[GROUP]
        self.exchange: str = configuration.control_exchange
        self.connection: Connection | None = None
        self.confirms: Confirms | None = None
        self.used = 0.0

    def channel(self) -> Confirms:
        """Return the channel of the open connection, or of a new one.

        Raises:
            kombu.exceptions.OperationalError: no broker responds.
        """
        now = time.monotonic()
        # The broker closes an idle connection, because its heartbeats are not processed here.
        longest = self.options.heartbeat_timeout_threshold / 2 or float("inf")
        if self.confirms is None or now - self.used > longest:
            self.close()
            self.connection = self.connect()
            self.confirms = Confirms(self.connection, self.exchange, self.options.kombu_compression)
        self.used = now
        return self.confirms

    def connect(self) -> Connection:
        connection = Connection(
            ";".join(self.addresses()),
            ssl=self.tls_parameters(),
            login_method=self.options.rabbit_login_method,
            heartbeat=self.options.heartbeat_timeout_threshold,
            failover_strategy=self.options.kombu_failover_strategy,
            transport_options={"write_timeout": settings.WEBHOOK_TIMEOUT},
        )
        # Each broker of a cluster is tried, and one of them twice.
        connection.ensure_connection(max_retries=len(self.url.hosts), interval_start=0)
        return connection

    def close(self) -> None:
        """Close the connection, even if it is broken."""
        connection, self.connection, self.confirms = self.connection, None, None
        if connection:
            connection.release()

    def addresses(self) -> list[str]:
        """Return the addresses of the brokers in the format of kombu, in random order."""
        return [
            f"amqp://{quote(host.username or '', safe='')}:{quote(host.password or '', safe='')}"
            f"@{f'[{host.hostname}]' if ':' in host.hostname else host.hostname}:{host.port or PORT}"
            f"/{self.url.virtual_host or ''}"
            for host in random.sample(self.url.hosts, len(self.url.hosts))
        ]

    def tls_parameters(self) -> dict[str, Any] | bool:
        """Return the TLS parameters in the format of kombu, or False without TLS."""
        options = self.options
        if not options.ssl:
            return False
        given = {
            "ssl_version": options.ssl_version and TLS_VERSIONS[options.ssl_version.lower()],
            "keyfile": options.ssl_key_file,
            "certfile": options.ssl_cert_file,
            "ca_certs": options.ssl_ca_file,
        }
        parameters: dict[str, Any] = {name: value for name, value in given.items() if value}
        if options.ssl_ca_file:
            # With None, kombu checks the name of the broker to which it connects.
            name = self.url.hosts[0].hostname if len(self.url.hosts) == 1 else None
            parameters |= {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": name}
        return parameters or True
