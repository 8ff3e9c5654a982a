"""Operations on subscriptions for the API, the console and the commands, and test messages."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction

from watcher_site import plugins
from watcher_site.database.locks import lock_present
from watcher_site.database.text import require_storable
from watcher_site.database.uniqueness import refuse_taken
from watcher_site.history import differences, record
from watcher_site.models import Delivery, Notification, Subscription
from watcher_site.models.notifications import NAME_LENGTH
from watcher_site.notifications.webhook_addresses import checked_url
from watcher_site.notifications.webhooks import checked_secret, make_secret, seal_secret
from watcher_site.outbox.kinds import INFO, Kind
from watcher_site.outbox.payloads import identifier, versioned
from watcher_site.outbox.writing import listeners, matches
from watcher_site.refusals import Conflict, Invalid
from watcher_site.validation import require_addressable_name, require_seen

CHANGE = "watcher_site.change_subscription"
# The name of the broker among the receivers.
BROKER = "broker"
NO_NAMES = ("detail", BROKER)
CHANGEABLE = ("name", "url", "event_types", "enabled")
# The pattern of event types in which * stands for any letters.
PATTERN = re.compile(r"[a-z0-9_.*-]{1,63}")
MOST_PATTERNS = 50


def subscribe(
    name: str, url: str, event_types: Any = ("*",), secret: str | None = None, enabled: bool = True
) -> tuple[Subscription, str]:
    """Create a subscription, and return it with its secret, which cannot be read later.

    Args:
        url: the address that receives notifications, each in a POST.
        event_types: patterns, in which ``*`` stands for any letters.
        secret: the key that signs notifications; generated if it is left out.

    Raises:
        Invalid: the message names the field and the rule.
        Conflict: another subscription has the name, or there are too many.
    """
    chosen = make_secret() if secret is None else checked_secret(secret)
    subscription = Subscription(
        name=checked_name(name),
        url=checked_url(url),
        event_types=checked_event_types(event_types),
        enabled=checked_switch(enabled),
        secret=seal_secret(chosen),
    )
    with transaction.atomic():
        number, most = Subscription.objects.present().count(), settings.MOST_SUBSCRIPTIONS
        if number >= most:
            raise Conflict(f"There are {number} subscriptions already, and WATCHER_MOST_SUBSCRIPTIONS allows {most}.")
        save_subscription(subscription)
        record("subscription.create", subscription, details=history_details(subscription))
        listeners.forget_on_commit()
    return subscription, chosen


@transaction.atomic
def change_subscription(subscription: Subscription, changes: Mapping[str, Any]) -> Subscription:
    """Change fields of `CHANGEABLE` and ``secret``, and return the changed subscription.

    Pending deliveries are tried at once, however long the pause was that failures led to.

    Raises:
        Invalid: the message names the field and the rule.
        Conflict: another subscription has the name.
        NotFound: it was deleted meanwhile.
    """
    locked = lock_present(subscription)
    before, url = history_details(locked), locked.url
    for name, value in changes.items():
        # A value that stays is not checked again: its rules, or the host's address, may have changed since.
        if value != getattr(locked, name):
            setattr(locked, name, CHECKS[name](value))
    locked.failures, locked.due_time = 0, None
    save_subscription(locked, [*changes, "failures", "due_time"])
    details = differences(before, history_details(locked))
    if locked.url != url:
        details.setdefault("url", "changed")
    if "secret" in changes:
        details["secret"] = "changed"  # noqa: S105 (that it was changed, and not what it is)
    record("subscription.update", locked, details=details)
    listeners.forget_on_commit()
    return locked


def renew_secret(subscription: Subscription) -> tuple[Subscription, str]:
    """Replace the secret of a subscription, and return both.

    The new secret cannot be read later; the old one is invalid.

    Raises:
        NotFound: it was deleted meanwhile.
    """
    secret = make_secret()
    return change_subscription(subscription, {"secret": secret}), secret


@transaction.atomic
def unsubscribe(subscription: Subscription) -> None:
    """Delete a subscription with its pending deliveries.

    Raises:
        NotFound: someone else deleted it.
    """
    locked = lock_present(subscription)
    Subscription.objects.filter(pk=locked.pk).soft_delete()
    locked.deliveries.all().delete()
    record("subscription.delete", locked)
    listeners.forget_on_commit()


def find_subscription(name: str) -> Subscription:
    """Return the subscription that a command names, by its name or its UUID. Raises: `Invalid`."""
    found: Subscription | None = Subscription.objects.present().named(name).first()
    if found is None:
        raise Invalid(f"name: there is no subscription {name}.")
    return found


def save_subscription(subscription: Subscription, fields: list[str] | None = None) -> None:
    taken = Conflict(f"name: another subscription is called {subscription.name}.")
    with refuse_taken(Subscription, "name", taken):
        subscription.save() if fields is None else subscription.save_changes(fields)


def changeable_values(subscription: Subscription) -> dict[str, Any]:
    """Return the current values of the fields of a subscription that can be changed."""
    return {name: getattr(subscription, name) for name in CHANGEABLE}


def history_details(subscription: Subscription) -> dict[str, Any]:
    """Return the details of a subscription for history. Of its address, only the host: the rest may be a token."""
    return {**changeable_values(subscription), "url": origin_of(subscription.url)}


def url_for(user: Any, url: str) -> str:
    """Return the address for a person, without its path, which may contain a token, if they may not change it."""
    return url if user.has_perm(CHANGE) else origin_of(url)


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def checked_name(name: Any) -> str:
    if not isinstance(name, str) or not 0 < len(name.strip()) <= NAME_LENGTH:
        raise Invalid(f"name: must be a text of 1 to {NAME_LENGTH} characters.")
    require_storable("name", name)
    require_seen("name", name.strip())
    require_addressable_name(name.strip(), NO_NAMES)
    return name.strip()


def checked_switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Invalid("enabled: must be true or false.")
    return value


@cache
def known_event_types() -> frozenset[str]:
    """Return the event types of all kinds of notifications."""
    kinds: Iterable[Any] = plugins.load("NOTIFICATION_KINDS").values()
    return frozenset(f"{kind.name}.{name}" for kind in kinds for name in kind.event_names)


def checked_event_types(patterns: Any) -> list[str]:
    """Return the patterns of event types, each once.

    Raises:
        Invalid: the message names the pattern that makes no sense, or stands for no event.
    """
    if not isinstance(patterns, list | tuple) or not 0 < len(patterns) <= MOST_PATTERNS:
        raise Invalid(f"event_types: must be a list of 1 to {MOST_PATTERNS} patterns.")
    for pattern in patterns:
        if not isinstance(pattern, str) or not PATTERN.fullmatch(pattern):
            raise Invalid("event_types: a pattern is an event type, in which * stands for any letters: action.*")
        if not any(matches([pattern], known) for known in known_event_types()):
            raise Invalid(f"event_types: there is no event {pattern}; {suggest_event_types(pattern)}.")
    return list(dict.fromkeys(patterns))


def suggest_event_types(pattern: str) -> str:
    """Return a hint at the event types for a pattern that matches none."""
    known = sorted(known_event_types())
    if close := get_close_matches(pattern, known, n=1):
        return f"there is {close[0]}"
    return f"events begin with {', '.join(sorted({name.partition('.')[0] for name in known}))}"


CHECKS = {
    "name": checked_name,
    "url": checked_url,
    "event_types": checked_event_types,
    "enabled": checked_switch,
    "secret": lambda secret: seal_secret(checked_secret(secret)),
}


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
        event_type=f"{SubscriptionNotifications.name}.test",
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
