"""The envelopes of notifications: oslo.messaging's for the message broker, CloudEvents for webhooks."""

from typing import Any

from cloudevents.core.bindings.http import HTTPMessage, to_structured_event
from cloudevents.core.v1.event import CloudEvent

from watcher_site.notifications.deliveries import SentNotification
from watcher_site.outbox.writing import kind_named

# The number of digits of the largest key, so that sequences also sort correctly as texts.
KEY_DIGITS = 19


def publisher(notification: SentNotification) -> str:
    return f"{kind_named(notification.kind).publisher}:{notification.host}"


def payload(notification: SentNotification) -> dict[str, Any]:
    return kind_named(notification.kind).payload(notification)


def broker_message(notification: SentNotification) -> dict[str, Any]:
    """Return the message in the format of oslo.messaging's notifiers. Repeated attempts have the same id."""
    return {
        "message_id": str(notification.uuid),
        "publisher_id": publisher(notification),
        "event_type": notification.event_type,
        "priority": notification.priority,
        "payload": payload(notification),
        "timestamp": f"{notification.created_at:%Y-%m-%d %H:%M:%S.%f}",
    }


def broker_context(notification: SentNotification) -> dict[str, str]:
    """Return the context of the message, which listeners of oslo.messaging receive with it."""
    return {"request_id": notification.request_id} if notification.request_id else {}


def cloud_event(notification: SentNotification) -> HTTPMessage:
    """Return headers and body of a CloudEvent 1.0 in structured mode.

    ``sequence`` increases with each notification of an object.
    """
    attributes = {
        "id": str(notification.uuid),
        "source": publisher(notification),
        "type": notification.event_type,
        "subject": str(notification.object_uuid),
        "time": notification.created_at,
        "datacontenttype": "application/json",
        "priority": notification.priority,
        "sequence": f"{notification.pk:0{KEY_DIGITS}}",
    }
    return to_structured_event(CloudEvent(attributes, payload(notification)))
