"""The message broker as a receiver, through oslo.messaging. Imported only if a broker is set."""

from collections.abc import Sequence
from logging import ERROR, getLogger
from typing import Any

import oslo_messaging
import structlog
from django.conf import settings
from oslo_messaging.notify.messaging import MessagingV2Driver

from watcher_site.notifications.deliveries import SentNotification
from watcher_site.notifications.envelope import broker_context, broker_message
from watcher_site.notifications.messages import BROKER_DOES_NOT_ANSWER
from watcher_site.notifications.rabbitmq.connections import KeptConnection, make_configuration
from watcher_site.notifications.rabbitmq.publisher import Publisher, envelope
from watcher_site.notifications.receivers import (
    BatchedReceiver,
    Problem,
    Receiver,
    SequentialReceiver,
    Unreachable,
    unsendable,
)
from watcher_site.request_context import within_request

log = structlog.get_logger(__name__)
RABBIT = "rabbit://"
# Another attempt uses a new connection, as the broker may have closed the existing one.
RETRIES = 1


def make_receiver() -> Receiver:
    return BrokerReceiver() if settings.NOTIFICATION_URL.startswith(RABBIT) else DriverReceiver()


def silence_driver() -> None:
    """Prevent oslo.messaging from logging each attempt with the address."""
    getLogger("oslo.messaging").setLevel(ERROR + 1)


def open_transport() -> Any:
    """Return the transport of oslo.messaging, which is not connected yet."""
    silence_driver()
    return oslo_messaging.get_notification_transport(make_configuration(), settings.NOTIFICATION_URL)


class BrokerReceiver(BatchedReceiver):
    """RabbitMQ, to which notifications are published in batches."""

    def __init__(self) -> None:
        self.connection = KeptConnection(settings.NOTIFICATION_URL)
        self.publisher = Publisher(self.connection)

    def send(self, notification: SentNotification) -> None:
        """Deliver one notification.

        Raises:
            Undelivered, Unreachable: it was not delivered.
        """
        (problem,) = self.send_batch([notification])
        if problem:
            raise problem

    def send_batch(self, notifications: Sequence[SentNotification]) -> list[Problem | None]:
        results: list[Problem | None] = [None] * len(notifications)
        messages: list[tuple[str, bytes]] = []
        places: list[int] = []
        for place, notification in enumerate(notifications):
            try:
                body = envelope(broker_message(notification), broker_context(notification))
            except Exception as error:
                with within_request(notification.request_id):
                    results[place] = unsendable(error)
                continue
            queues = [f"{topic}.{notification.priority.lower()}" for topic in settings.NOTIFICATION_TOPICS]
            messages += [(queue, body) for queue in queues]
            places += [place] * len(queues)
        for place, problem in zip(places, self.publisher.publish(messages), strict=True):
            results[place] = results[place] or problem
        return results

    def close(self) -> None:
        self.connection.close()


class RaisingDriver(MessagingV2Driver):
    """The oslo.messaging driver for notifications, which raises an error for a lost message instead of logging it."""

    def notify(self, ctxt: Any, message: Any, priority: str, retry: int) -> None:
        """Send one message to each topic, and return when the broker has accepted it.

        Raises:
            Exception: any error of the transport.
        """
        for topic in self.topics:
            target = oslo_messaging.Target(topic=f"{topic}.{priority.lower()}")
            self.transport._send_notification(target, ctxt, message, version=self.version, retry=retry)


class DriverReceiver(SequentialReceiver):
    """A broker of another kind, through the driver of oslo.messaging."""

    def __init__(self) -> None:
        self.transport = open_transport()
        self.driver = RaisingDriver(self.transport.conf, topics=settings.NOTIFICATION_TOPICS, transport=self.transport)

    def send(self, notification: SentNotification) -> None:
        message = broker_message(notification)
        try:
            self.driver.notify(broker_context(notification), message, notification.priority, RETRIES)
        except Exception as problem:
            # The message of the transport names hosts and users, and is only logged.
            log.warning("broker did not take a notification", reason=str(problem).strip())
            raise Unreachable(BROKER_DOES_NOT_ANSWER.text) from problem

    def close(self) -> None:
        super().close()
        self.transport.cleanup()
