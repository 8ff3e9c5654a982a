"""Create, change and delete subscriptions, for the API, the console and the commands."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction

from watcher_site.database.locks import lock_present
from watcher_site.database.text import require_storable
from watcher_site.database.uniqueness import refuse_taken
from watcher_site.history import differences, record
from watcher_site.models import Subscription
from watcher_site.models.notifications import NAME_LENGTH
from watcher_site.notifications.webhooks.addresses import checked_url
from watcher_site.notifications.webhooks.receiver import checked_secret, make_secret, seal_secret
from watcher_site.outbox.event_types import checked_event_types
from watcher_site.outbox.listeners import listeners
from watcher_site.refusals import Conflict, Invalid
from watcher_site.validation.names import require_addressable_name, require_seen

CHANGE = "watcher_site.change_subscription"
# The name of the broker among the receivers.
BROKER = "broker"
NO_NAMES = ("detail", BROKER)
CHANGEABLE = ("name", "url", "event_types", "enabled")


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
        record("subscription.create", subscription, details=shown(subscription))
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
    before, url = shown(locked), locked.url
    for name, value in changes.items():
        # A value that stays is not checked again: its rules, or the host's address, may have changed since.
        if value != getattr(locked, name):
            setattr(locked, name, CHECKS[name](value))
    locked.failures, locked.due_time = 0, None
    save_subscription(locked, [*changes, "failures", "due_time"])
    details = differences(before, shown(locked))
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
    """Delete a subscription with what still waits for it.

    Raises:
        NotFound: someone else deleted it.
    """
    locked = lock_present(subscription)
    Subscription.objects.filter(pk=locked.pk).soft_delete()
    locked.deliveries.all().delete()
    record("subscription.delete", locked)
    listeners.forget_on_commit()


def subscription_named(name: str) -> Subscription:
    """Return the subscription that a command names, by its name or its UUID. Raises: `Invalid`."""
    found: Subscription | None = Subscription.objects.present().named(name).first()
    if found is None:
        raise Invalid(f"name: there is no subscription {name}.")
    return found


def save_subscription(subscription: Subscription, fields: list[str] | None = None) -> None:
    taken = Conflict(f"name: another subscription is called {subscription.name}.")
    with refuse_taken(Subscription, "name", taken):
        subscription.save() if fields is None else subscription.save_changes(fields)


def changeable(subscription: Subscription) -> dict[str, Any]:
    """Return what can be changed of a subscription, as it is."""
    return {name: getattr(subscription, name) for name in CHANGEABLE}


def shown(subscription: Subscription) -> dict[str, Any]:
    """Return what history tells of a subscription: of its address the host alone, as the rest often holds a token."""
    return {**changeable(subscription), "url": origin_of(subscription.url)}


def url_for(user: Any, url: str) -> str:
    """Return what a person may see of an address: who may not change a subscription sees no token that is in it."""
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


CHECKS = {
    "name": checked_name,
    "url": checked_url,
    "event_types": checked_event_types,
    "enabled": checked_switch,
    "secret": lambda secret: seal_secret(checked_secret(secret)),
}
