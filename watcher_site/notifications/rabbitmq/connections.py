"""The kept connection to RabbitMQ: kombu's, to the brokers of an oslo.messaging transport URL and with its options."""

import random
import ssl
import time
from typing import Any
from urllib.parse import quote

import oslo_messaging
from django.conf import settings
from kombu import Connection
from oslo_config.cfg import ConfigOpts
from oslo_messaging.opts import list_opts

from watcher_site.notifications.rabbitmq.confirms import Confirms

GROUP = "oslo_messaging_rabbit"
PORT = 5672
TLS_VERSIONS = {
    name.removeprefix("PROTOCOL_").lower(): getattr(ssl, name) for name in dir(ssl) if name.startswith("PROTOCOL_")
}


def make_configuration() -> ConfigOpts:
    """Return a configuration of oslo.messaging that reads no files."""
    configuration = ConfigOpts()
    configuration([], project="watcher", default_config_files=[], default_config_dirs=[])
    return configuration


class KeptConnection:
    """A connection that is opened when it is needed and kept until it is idle for too long. One thread uses it.

    Raises:
        oslo_config.cfg.Error, ValueError: the URL has an option that does not exist, or a wrong value of one.
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
        """Return the channel of the kept connection, or else of a new one.

        Raises:
            kombu.exceptions.OperationalError: no broker answers.
        """
        now = time.monotonic()
        # The broker closes an idle connection: nothing here answers its heartbeats.
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
        """Close the connection, also a broken one."""
        connection, self.connection, self.confirms = self.connection, None, None
        if connection:
            connection.release()

    def addresses(self) -> list[str]:
        """Return the addresses of the brokers as kombu has them, in random order."""
        return [
            f"amqp://{quote(host.username or '', safe='')}:{quote(host.password or '', safe='')}"
            f"@{f'[{host.hostname}]' if ':' in host.hostname else host.hostname}:{host.port or PORT}"
            f"/{self.url.virtual_host or ''}"
            for host in random.sample(self.url.hosts, len(self.url.hosts))
        ]

    def tls_parameters(self) -> dict[str, Any] | bool:
        """Return the TLS parameters as kombu has them, or False without TLS."""
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
            # For None, kombu compares the name of the broker that it connects to.
            name = self.url.hosts[0].hostname if len(self.url.hosts) == 1 else None
            parameters |= {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": name}
        return parameters or True
