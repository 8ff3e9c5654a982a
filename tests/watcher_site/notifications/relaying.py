"""Builders of notifications and dead letters, and a relay that runs until no notification can be delivered."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID, uuid4

from watcher_site.models import Delivery, Notification, Subscription
from watcher_site.notifications.relay import Relay
from watcher_site.notifications.webhooks import make_secret, seal_secret
from watcher_site.outbox.writing import listeners

STATE = {"uuid": str(uuid4()), "action_type": "nop", "input_parameters": {}, "state": "ONGOING", "parents": []}
TIMES = {"created_at": "2026-11-20T23:35:00+00:00", "updated_at": None, "deleted_at": None}
PLAN = {"uuid": str(uuid4()), "state": "ONGOING", "global_efficacy": [], "audit_uuid": None, "strategy_uuid": None}


def subscribe_to(url: str, name: str = "receiver", **columns: Any) -> Subscription:
    columns = {"event_types": ["*"], "secret": seal_secret(make_secret()), **columns}
    subscription: Subscription = Subscription.objects.create(name=name, url=url, **columns)
    listeners.forget()
    return subscription


def notify(of: UUID | None = None, event_type: str = "action.update", number: int = 1) -> list[Notification]:
    """Write notifications of one action into the outbox."""
    snapshot = {**STATE, "status_message": None, **TIMES, "plan": {**PLAN, "status_message": None, **TIMES}}
    of = of or uuid4()
    rows = [
        Notification(
            kind="action",
            event_type=event_type,
            priority="INFO",
            object_uuid=of,
            old_state="PENDING",
            snapshot=snapshot | {"status_message": f"number {place}"},
            host="ctrl-1",
        )
        for place in range(number)
    ]
    created: list[Notification] = Notification.objects.bulk_create(rows)
    return created


def relay(*, until_idle: bool = True) -> Relay:
    """Run a relay with its delivery threads until it is idle, or once."""
    one = Relay("here")
    try:
        while True:
            one.advance()
            for running in one.threads.values():
                if running.thread:
                    running.thread.join()
            if not until_idle or one.is_idle:
                return one
    finally:
        one.stop()


def numbers(events: Iterable[dict[str, Any]]) -> list[int]:
    """Return the numbers that `notify` gave to the notifications of these events."""
    return [int(event["data"]["watcher_object.data"]["status_message"].split()[1]) for event in events]


def delivery_states() -> list[tuple[str, int]]:
    """Return the state and the attempts of each delivery."""
    return list(Delivery.objects.order_by("pk").values_list("state", "attempts"))


def make_undelivered(subscription: Subscription | None = None) -> Delivery:
    """Make a dead letter to a subscription, or to the broker."""
    (notification,) = notify()
    Notification.objects.filter(pk=notification.pk).update(is_dispatched=True)
    delivery: Delivery = Delivery.objects.create(
        notification=notification,
        subscription=subscription,
        line=uuid4(),
        state=Delivery.State.UNDELIVERED,
        attempts=12,
        problem="It answered 500 Internal Server Error.",
    )
    return delivery
