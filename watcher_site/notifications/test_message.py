"""A message that tries a receiver: signed and sent as every other, to one subscription, whatever it listens to."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import transaction

from watcher_site.database.locks import lock_present
from watcher_site.history import record
from watcher_site.models import Delivery, Notification, Subscription
from watcher_site.outbox.kinds import INFO, Kind
from watcher_site.outbox.payloads import identifier, versioned
from watcher_site.refusals import Conflict

TEST = "test"


class SubscriptionNotifications(Kind):
    name = "subscription"
    # No event type, as test messages go only to the receiver that is tested.
    event_names = ()

    @property
    def model(self) -> type[Subscription]:
        return Subscription

    def snapshot(self) -> Mapping[str, Any]:
        return {"uuid": "uuid", "name": "name"}

    def payload(self, notification: Any) -> dict[str, Any]:
        snapshot = notification.snapshot
        data = {"uuid": identifier(snapshot["uuid"]), "name": snapshot["name"]}
        return versioned("SubscriptionTestPayload", "1.0", data)


@transaction.atomic
def send_test(subscription: Subscription) -> Notification:
    """Send a test message, at once even if the receiver is paused after failures.

    Raises:
        Conflict: the subscription is disabled.
        NotFound: it was deleted meanwhile.
    """
    locked = lock_present(subscription)
    if not locked.enabled:
        raise Conflict(f"Subscription {locked.name} is disabled: enable it first.")
    notification = Notification.objects.create(
        kind=SubscriptionNotifications.name,
        event_type=f"{SubscriptionNotifications.name}.{TEST}",
        priority=INFO,
        object_uuid=locked.uuid,
        snapshot={"uuid": str(locked.uuid), "name": locked.name},
        host=settings.HOST,
        is_dispatched=True,
    )
    Delivery.objects.create(notification=notification, subscription=locked, line=locked.uuid)
    Subscription.objects.filter(pk=locked.pk).update(due_time=None)
    record("subscription.test", locked)
    return notification
