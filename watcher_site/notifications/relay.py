"""The relay, which sends the notifications of the outbox at least once, and those of each object in order.

It may be killed at any moment: another relay takes over its deliveries, and may send some again.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from importlib import import_module
from threading import Event
from typing import Any, NamedTuple
from uuid import UUID
from warnings import filterwarnings

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from watcher_site.database.locks import lock_table
from watcher_site.models import Delivery, Notification, Service, Subscription
from watcher_site.notifications.chat import SlackReceiver
from watcher_site.notifications.delivery_thread import DeliveryThread
from watcher_site.notifications.mail import MailReceiver
from watcher_site.notifications.receivers import Receiver
from watcher_site.notifications.services import announce_services
from watcher_site.notifications.webhooks import WebhookReceiver
from watcher_site.outbox.writing import broker_wants, matches
from watcher_site.processes.worker import Worker
from watcher_site.refusals import Invalid

BATCH = 1000
RECEIVERS: Mapping[str, Callable[[Subscription], Receiver]] = {
    Subscription.Kind.WEBHOOK: WebhookReceiver,
    Subscription.Kind.MAIL: MailReceiver,
    Subscription.Kind.SLACK: SlackReceiver,
}
# The columns of a subscription that its receiver uses.
USED = ("url", "secret", "addresses")


class New(NamedTuple):
    """The columns of a notification that select its receivers."""

    pk: int
    event_type: str
    priority: str
    object_uuid: UUID
    created_at: datetime


def dispatch() -> int:
    """Create the deliveries of the oldest new notifications, and return the number of these notifications.

    Only one relay at a time does this, which keeps the deliveries of an object in the order of its notifications.
    """
    if not Notification.objects.undispatched().exists():
        return 0
    with transaction.atomic():
        lock_table(Notification)
        new = [New._make(row) for row in Notification.objects.undispatched().values_list(*New._fields)[:BATCH]]
        # Locked, so that deleting a subscription also deletes the deliveries written here.
        subscriptions = list(Subscription.objects.enabled().order_by("pk").select_for_update(no_key=True))
        Delivery.objects.bulk_create(
            (delivery for one in new for delivery in make_deliveries(one, subscriptions)), batch_size=BATCH
        )
        Notification.objects.filter(pk__in=[one.pk for one in new]).update(is_dispatched=True)
    return len(new)


def make_deliveries(notification: New, subscriptions: list[Subscription]) -> Iterator[Delivery]:
    """Yield the delivery for the broker, and one for each older subscription to the event type."""
    columns = {"notification_id": notification.pk, "line": notification.object_uuid}
    if broker_wants(notification.priority):
        yield Delivery(**columns)
    for subscription in subscriptions:
        if subscription.created_at <= notification.created_at and matches(
            subscription.event_types, notification.event_type
        ):
            yield Delivery(**columns, subscription=subscription)


def import_broker() -> Any:
    """Import the broker's receiver, which requires the extra [openstack]."""
    # oslo.messaging still imports Eventlet, but does not use it here: operators need no warning.
    filterwarnings("ignore", message=r"\s*Eventlet is deprecated")
    return import_module("watcher_site.notifications.rabbitmq.receiver")


def make_broker() -> Receiver:
    receiver: Receiver = import_broker().make_receiver()
    return receiver


class Relay(Worker):
    """A process with a delivery thread for each receiver that has pending deliveries."""

    kind = Service.RELAY

    def __init__(self, host: str | None = None) -> None:
        self.threads: dict[int | None, DeliveryThread] = {}
        self.wake = Event()
        self.dispatched = 0
        self.has_checked = self.found = False
        super().__init__(host)

    def prepare(self) -> None:
        # The import takes a second, which would otherwise delay the first deliveries.
        if settings.NOTIFICATION_URL:
            import_broker()

    @property
    def is_idle(self) -> bool:
        is_running = any(delivery_thread.is_running for delivery_thread in self.threads.values())
        return self.has_checked and not (self.found or self.dispatched or is_running)

    def step(self) -> None:
        self.has_checked = False
        if self.heartbeat.lost:
            self.renew()
        announce_services()
        self.dispatched = dispatch()
        self.found = self.deliver()
        self.has_checked = True

    def deliver(self) -> bool:
        """Start a thread for each receiver with pending deliveries, and return whether any was started."""
        was_started = False
        self.close_removed_receivers()
        for key, subscription in self.receivers_with_deliveries().items():
            delivery_thread = self.thread_for(key, subscription)
            if delivery_thread is not None and delivery_thread.is_free and self.heartbeat.holds:
                delivery_thread.start()
                was_started = True
        return was_started

    def receivers_with_deliveries(self) -> dict[int | None, Subscription | None]:
        """Return the receivers with deliveries that can be sent now, by key."""
        now = timezone.now()
        waiting = Delivery.objects.pending().due(now)
        due = Subscription.objects.enabled().filter(Q(due_time=None) | Q(due_time__lte=now))
        found = due.filter(Exists(waiting.filter(subscription=OuterRef("pk")).unclaimed()))
        receivers: dict[int | None, Subscription | None] = {one.pk: one for one in found}
        if settings.NOTIFICATION_URL and waiting.filter(subscription=None).exists():
            receivers[None] = None
        return receivers

    def close_removed_receivers(self) -> None:
        """Close the connections to receivers that were deleted or disabled, once their threads have stopped."""
        known = {key for key in self.threads if key is not None}
        if known:
            known -= set(Subscription.objects.enabled().filter(pk__in=known).values_list("pk", flat=True))
        for key in known:
            self.release(key)

    def release(self, key: int | None) -> bool:
        """Stop a receiver's thread after its current message. Return whether it has stopped and was closed."""
        delivery_thread = self.threads[key]
        delivery_thread.stop()
        if delivery_thread.is_running:
            return False
        self.threads.pop(key).close(0)
        return True

    def thread_for(self, key: int | None, subscription: Subscription | None) -> DeliveryThread | None:
        """Return the delivery thread of a receiver, or a new one if the receiver was changed."""
        known = self.threads.get(key)
        if known and (subscription is None or (not known.stopping and is_same(known.subscription, subscription))):
            return known
        if known and not self.release(key):
            return None
        try:
            receiver = RECEIVERS[subscription.kind](subscription) if subscription else make_broker()
        except Invalid as problem:
            self.log.error("receiver unusable", receiver=str(subscription), reason=str(problem))
            return None
        thread = DeliveryThread(subscription, receiver, self.service, lambda: self.heartbeat.holds, self.wake)
        self.threads[key] = thread
        return thread

    def rest(self) -> None:
        if self.dispatched < BATCH:
            self.wake.wait(settings.POLL_INTERVAL)
        self.wake.clear()

    def await_database(self) -> None:
        self.dispatched = 0
        time.sleep(settings.POLL_INTERVAL)

    def renew(self) -> None:
        self.stop_threads(0)
        super().renew()

    def stop_threads(self, timeout: float) -> None:
        """Stop the threads of all receivers, and wait up to ``timeout`` seconds for messages being sent."""
        until = time.monotonic() + timeout
        for delivery_thread in self.threads.values():
            delivery_thread.stop()
        for delivery_thread in self.threads.values():
            delivery_thread.close(max(0.0, until - time.monotonic()))
        self.threads.clear()

    def stop(self) -> None:
        self.stop_threads(2 * settings.WEBHOOK_TIMEOUT)
        super().stop()


def is_same(one: Subscription | None, other: Subscription) -> bool:
    return one is not None and all(getattr(one, name) == getattr(other, name) for name in USED)
