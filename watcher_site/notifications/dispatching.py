"""Who is to be told: for what changes wrote into the outbox, one delivery for each receiver that listens to it."""

from collections.abc import Iterator
from uuid import NAMESPACE_OID, UUID, uuid5

from django.db import transaction

from watcher_site.locks import lock_table
from watcher_site.models import Delivery, Notification, Subscription
from watcher_site.notifications.listeners import broker_wants, matches

BATCH = 1000
BROKER = uuid5(NAMESPACE_OID, "watcher_site.notifications.broker")


def dispatch() -> int:
    """Find out for the oldest notifications that are new who is to be told, and return how many these are.

    One relay at a time does so: of each object, deliveries are in the order of the notifications.
    """
    if not Notification.objects.undispatched().exists():
        return 0
    with transaction.atomic():
        lock_table(Notification)
        found = Notification.objects.undispatched().only("pk", "event_type", "priority", "object_uuid", "created_at")
        new = list(found[:BATCH])
        # Locked: whoever deletes one deletes with it what is written here.
        subscriptions = list(Subscription.objects.enabled().order_by("pk").select_for_update(no_key=True))
        Delivery.objects.bulk_create(
            (delivery for one in new for delivery in deliveries(one, subscriptions)), batch_size=BATCH
        )
        Notification.objects.filter(pk__in=[one.pk for one in new]).update(is_dispatched=True)
    return len(new)


def deliveries(notification: Notification, subscriptions: list[Subscription]) -> Iterator[Delivery]:
    """Give a delivery for the broker, and for each subscription to the type that was made before."""
    if broker_wants(notification.priority):
        yield Delivery(notification=notification, line=line(BROKER, notification))
    for subscription in subscriptions:
        if subscription.created_at <= notification.created_at and matches(
            subscription.event_types, notification.event_type
        ):
            yield Delivery(
                notification=notification, subscription=subscription, line=line(subscription.uuid, notification)
            )


def line(receiver: UUID, notification: Notification) -> UUID:
    return uuid5(receiver, str(notification.object_uuid))
