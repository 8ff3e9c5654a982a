"""The content of the outbox, as receivers read it."""

from typing import Any

from watcher_site.models import Notification, Subscription
from watcher_site.outbox.writing import kind_named, listeners


def listen(*event_types: str, **columns: Any) -> Subscription:
    """Subscribe to events of these types, or to all."""
    columns = {"name": "audience", "url": "http://127.0.0.1:8102/", "secret": "", **columns}
    subscription: Subscription = Subscription.objects.create(event_types=list(event_types or ["*"]), **columns)
    listeners.forget()
    return subscription


def written_event_types(*kinds: str) -> list[str]:
    """Return the types of the written events in order, of all objects or of some kinds."""
    found = Notification.objects.filter(kind__in=kinds) if kinds else Notification.objects.all()
    return list(found.order_by("pk").values_list("event_type", flat=True))


def payloads(event_type: str) -> list[dict[str, Any]]:
    """Return the payloads of the events of a type."""
    found = Notification.objects.filter(event_type=event_type).order_by("pk")
    return [kind_named(notification.kind).payload(notification) for notification in found]


def data(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a versioned object."""
    fields: dict[str, Any] = payload["watcher_object.data"]
    return fields
