"""A listener process, and a topic for the notifications that oslo.messaging's own notifier sends to it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import NamedTemporaryFile
from typing import Any
from uuid import uuid4

import oslo_messaging
from kombu import Connection, Producer
from oslo_config.cfg import ConfigOpts

from cluster.models import Server
from tests.broker import BROKER_URL
from tests.processes import Process, start_command
from tests.waiting import wait_for
from tests.watcher_site.notifications.listener import TRANSPORT_URL
from watcher_site.models import Service
from watcher_site.notifications.rabbitmq.publisher import envelope

# The same for all listeners of a test process: they are forked from one process that loaded the site with these names.
NAME = f"watcher-test-{uuid4()}"


class CloudTopics:
    """A topic of Nova and one of Cinder, and the queue of a pool, that no other test process uses."""

    def __init__(self) -> None:
        self.exchanges = {"nova": f"{NAME}-nova", "cinder": f"{NAME}-openstack"}
        self.topics = {"nova": f"{NAME}-versioned", "cinder": f"{NAME}-notifications"}
        self.pool = f"{NAME}-pool"
        self.processes: list[Process] = []

    def environment(self, url: str = TRANSPORT_URL) -> dict[str, str]:
        names = (f"{self.exchanges[service]}.{self.topics[service]}" for service in self.exchanges)
        return {
            "WATCHER_POLL_INTERVAL": "0.05",
            "WATCHER_LOG_LEVEL": "INFO",
            "WATCHER_CLOUD": "cluster.drivers.openstack.OpenStackCloud",
            "WATCHER_CLOUD_NOTIFICATION_URL": url,
            "WATCHER_CLOUD_NOTIFICATION_TOPICS": ",".join(names),
            "WATCHER_CLOUD_NOTIFICATION_POOL": self.pool,
        }

    def start(self, url: str = TRANSPORT_URL, starter: Callable[..., Any] = start_command) -> Any:
        """Start a listener, and return when it receives messages."""
        before = set(Service.objects.values_list("pk", flat=True))
        process = starter("listen_notifications", **self.environment(url))
        self.processes.append(process)
        wait_for(lambda: Service.objects.exclude(pk__in=before).exclude(lag=None).exists())
        wait_for(self.count_consumers)
        return process

    def count_consumers(self) -> int:
        with Connection(BROKER_URL) as connection:
            return int(connection.channel().queue_declare(self.pool, passive=True).consumer_count)

    def count_waiting(self) -> int:
        with Connection(BROKER_URL) as connection:
            return int(connection.channel().queue_declare(self.pool, passive=True).message_count)

    def notify(self, event: str, payload: Any, service: str = "nova") -> None:
        """Send a notification as Nova and Cinder do."""
        conf = ConfigOpts()
        with NamedTemporaryFile("w") as file:
            file.write(f"[DEFAULT]\ncontrol_exchange = {self.exchanges[service]}\n")
            file.flush()
            conf([], default_config_files=[file.name], default_config_dirs=[])
        transport = oslo_messaging.get_notification_transport(conf, TRANSPORT_URL)
        publisher = {"nova": "nova-compute:compute1", "cinder": "volume.block"}[service]
        notifier = oslo_messaging.Notifier(transport, publisher, "messagingv2", topics=[self.topics[service]])
        notifier.info({}, event, payload)
        transport.cleanup()

    def publish(self, message: dict[str, Any]) -> None:
        """Send a message with its own timestamp as Nova."""
        with Connection(BROKER_URL) as connection:
            producer = Producer(connection.channel(), auto_declare=False)
            options = {"content_type": "application/json", "content_encoding": "utf-8"}
            key = f"{self.topics['nova']}.info"
            producer.publish(envelope(message), key, exchange=self.exchanges["nova"], **options)

    def remove(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        with Connection(BROKER_URL) as connection:
            channel = connection.channel()
            channel.queue_delete(self.pool)
            for service, exchange in self.exchanges.items():
                channel.queue_delete(f"{self.topics[service]}.info")
                channel.exchange_delete(exchange)


@contextmanager
def cloud_topics() -> Iterator[CloudTopics]:
    topics = CloudTopics()
    try:
        yield topics
    finally:
        topics.remove()


def state_of(server: str) -> str | None:
    state: str | None = Server.objects.filter(uuid=server).values_list("state", flat=True).first()
    return state
