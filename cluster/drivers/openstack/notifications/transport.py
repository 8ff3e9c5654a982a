"""The connection to the broker of the cloud: the listener of oslo.messaging, and the state of its queue.

It requires the extra [openstack], and is imported only if a broker is configured.
"""

from collections.abc import Iterable
from typing import Any

import oslo_messaging
from amqp.exceptions import AccessRefused, AMQPError, NotAllowed, PreconditionFailed
from django.conf import settings
from kombu import Exchange, Queue, binding
from kombu.exceptions import OperationalError
from oslo_config.cfg import Error as OptionError
from oslo_messaging.opts import list_opts

from watcher_site.notifications.rabbitmq.connections import GROUP, KeptConnection, make_configuration
from watcher_site.notifications.rabbitmq.publisher import queue_arguments
from watcher_site.notifications.rabbitmq.receiver import silence_driver
from watcher_site.refusals import Invalid

VARIABLE = "WATCHER_CLOUD_NOTIFICATION_URL"
# Permanent refusals of a login or a declaration.
REFUSALS = (AccessRefused, NotAllowed, PreconditionFailed)
LOST = (OperationalError, AMQPError, OSError)
# The number of unacknowledged messages that the broker sends, which limits the memory of the process.
PREFETCH = 100
# The priorities of the events that are used.
PRIORITIES = ("info", "warn", "error")


class BrokerRefused(Invalid):
    """The broker of the cloud refuses the login, or the queue of the listener."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{VARIABLE}: the broker refuses it: {reason}")


def topics() -> list[tuple[str, str]]:
    """Return the pairs of exchange and topic."""
    return [
        (exchange, topic)
        for name in settings.CLOUD_NOTIFICATION_TOPICS
        for exchange, _, topic in [name.partition(".")]
    ]


class CloudBroker:
    """The broker that Nova and Cinder send notifications to.

    Raises:
        Invalid: the URL has an option that does not exist, or a wrong value of one.
    """

    def __init__(self) -> None:
        try:
            self.connection = KeptConnection(settings.CLOUD_NOTIFICATION_URL)
            self.queue = make_queue(self.connection.options)
        except (OptionError, ValueError) as problem:
            raise Invalid(f"{VARIABLE}: {problem}") from problem

    def require_rights(self) -> None:
        """Declare the queue and its bindings, and read from the queue.

        oslo.messaging would repeat a refused declaration forever.

        Raises:
            BrokerRefused: the broker refuses the login or one of these operations.
            kombu.exceptions.OperationalError, amqp.AMQPError, OSError: the broker does not respond.
        """
        try:
            with self.connection.connect() as connection:
                channel = connection.channel()
                self.queue(channel).declare()
                if message := channel.basic_get(self.queue.name):
                    channel.basic_reject(message.delivery_tag, requeue=True)
        except REFUSALS as problem:
            raise BrokerRefused(problem.reply_text or str(problem)) from problem

    def count_waiting(self) -> int:
        """Return the number of messages in the queue that no listener has received yet.

        Raises:
            BrokerRefused, kombu.exceptions.OperationalError, amqp.AMQPError, OSError: as above.
        """
        try:
            with self.connection.connect() as connection:
                return int(connection.channel().queue_declare(self.queue.name, passive=True).message_count)
        except REFUSALS as problem:
            raise BrokerRefused(problem.reply_text or str(problem)) from problem

    def make_listener(self, endpoints: Iterable[Any]) -> Any:
        """Return an unstarted listener of oslo.messaging."""
        silence_driver()
        configuration = make_configuration()
        configuration.register_opts(dict(list_opts())[GROUP], GROUP)
        configuration.set_override("rabbit_qos_prefetch_count", PREFETCH, GROUP)
        transport = oslo_messaging.get_notification_transport(configuration, settings.CLOUD_NOTIFICATION_URL)
        return oslo_messaging.get_notification_listener(
            transport,
            [oslo_messaging.Target(exchange=exchange, topic=topic) for exchange, topic in topics()],
            list(endpoints),
            executor="threading",
            allow_requeue=True,
            pool=settings.CLOUD_NOTIFICATION_POOL,
        )


def make_queue(options: Any) -> Queue:
    """Return the queue of the pool as oslo.messaging declares it, bound to all topics at all priorities.

    Args:
        options: those of oslo.messaging's rabbit driver.
    """
    durability = {
        "durable": options.amqp_durable_queues or options.rabbit_quorum_queue,
        "auto_delete": options.amqp_auto_delete,
    }
    exchanges = {exchange: Exchange(exchange, type="topic", **durability) for exchange, _ in topics()}
    bindings = [
        binding(exchanges[exchange], routing_key=f"{topic}.{priority}")
        for exchange, topic in topics()
        for priority in PRIORITIES
    ]
    return Queue(
        settings.CLOUD_NOTIFICATION_POOL, bindings=bindings, queue_arguments=queue_arguments(options), **durability
    )


def make_filter(event: str) -> Any:
    """Return the filter of oslo.messaging for events that match a regular expression."""
    return oslo_messaging.NotificationFilter(event_type=event)
