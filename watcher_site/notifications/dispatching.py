"""Turn notifications of the outbox into one delivery for each receiver that subscribed to their events."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import transaction

from watcher_site.database.locks import lock_table
from watcher_site.models import Delivery, Notification, Subscription
from watcher_site.outbox.listeners import broker_wants, matches

BATCH = 1000


class New(NamedTuple):
    """The columns of a notification that select its receivers."""

    pk: int
    event_type: str
    priority: str
    object_uuid: UUID
    created_at: datetime


def dispatch() -> int:
    """Create the deliveries of the oldest new notifications, and return the number of these notifications.

    Only one relay at a time does so, which keeps an object's deliveries in the order of its notifications.
    """
    if not Notification.objects.undispatched().exists():
        return 0
    with transaction.atomic():
        lock_table(Notification)
        new = [New._make(row) for row in Notification.objects.undispatched().values_list(*New._fields)[:BATCH]]
        # Locked, so that deleting a subscription also deletes the deliveries written here.
        subscriptions = list(Subscription.objects.enabled().order_by("pk").select_for_update(no_key=True))
        Delivery.objects.bulk_create(
            (delivery for one in new for delivery in deliveries(one, subscriptions)), batch_size=BATCH
        )
        Notification.objects.filter(pk__in=[one.pk for one in new]).update(is_dispatched=True)
    return len(new)


def deliveries(notification: New, subscriptions: list[Subscription]) -> Iterator[Delivery]:
    """Give a delivery for the broker, and for each subscription to the type that was made before."""
    columns = {"notification_id": notification.pk, "line": notification.object_uuid}
    if broker_wants(notification.priority):
        yield Delivery(**columns)
    for subscription in subscriptions:
        if subscription.created_at <= notification.created_at and matches(
            subscription.event_types, notification.event_type
        ):
            yield Delivery(**columns, subscription=subscription)
