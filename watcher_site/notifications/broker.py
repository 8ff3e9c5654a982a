"""The message broker as a receiver, by oslo.messaging's driver for notifications. Imported only where one is set."""

from logging import ERROR, getLogger
from typing import Any

import oslo_messaging
import structlog
from django.conf import settings
from oslo_config.cfg import ConfigOpts
from oslo_messaging.notify.messaging import MessagingV2Driver

from watcher_site.models import Notification
from watcher_site.notifications.envelope import broker_message
from watcher_site.notifications.receivers import Receiver, Unreachable

log = structlog.get_logger(__name__)
# Once more on a new connection, as the broker may have closed the kept one.
RETRIES = 1


class TellingDriver(MessagingV2Driver):
    """The driver that notifiers have, but for one thing: they log that a message was lost, and this one says so."""

    def notify(self, ctxt: Any, message: Any, priority: str, retry: int) -> None:
        """Send one message to each topic, and return when the broker has it.

        Raises:
            Exception: whatever the transport raises.
        """
        for topic in self.topics:
            target = oslo_messaging.Target(topic=f"{topic}.{priority.lower()}")
            self.transport._send_notification(target, ctxt, message, version=self.version, retry=retry)


class BrokerReceiver(Receiver):
    def __init__(self) -> None:
        # It tells each attempt in lines of its own, with the address.
        getLogger("oslo.messaging").setLevel(ERROR + 1)
        conf = ConfigOpts()
        conf([], project="watcher", default_config_files=[], default_config_dirs=[])
        self.transport = oslo_messaging.get_notification_transport(conf, settings.NOTIFICATION_URL)
        self.driver = TellingDriver(conf, topics=settings.NOTIFICATION_TOPICS, transport=self.transport)

    def send(self, notification: Notification) -> None:
        message = broker_message(notification)
        try:
            self.driver.notify({}, message, notification.priority, RETRIES)
        except Exception as problem:
            # What the transport says names hosts and users: it is for the log.
            log.warning("broker did not take a notification", reason=str(problem).strip())
            raise Unreachable("The broker does not answer.") from problem

    def close(self) -> None:
        self.transport.cleanup()
