"""The event types that any receiver subscribed to: a notification without a receiver is not written.

Each process reads the table of subscriptions at intervals and not at each change. A subscription that was created or
changed takes effect at once in the process that did so, and in the others within `SECONDS`.
"""

from collections.abc import Iterable
from fnmatch import translate
from functools import lru_cache
from math import inf
from re import Pattern, compile
from time import monotonic

from django.conf import settings
from django.core.signals import setting_changed
from django.db import transaction

from watcher_site.models import Subscription
from watcher_site.outbox.kinds import ERROR, INFO, WARNING

SECONDS = 1.0
# What is sent at each level.
LEVELS = {"info": {INFO, WARNING, ERROR}, "warning": {WARNING, ERROR}, "error": {ERROR}, "": set()}


@lru_cache(1000)
def matcher(pattern: str) -> Pattern[str]:
    return compile(translate(pattern))


def matches(patterns: Iterable[str], event_type: str) -> bool:
    """Return whether an event type matches one of the patterns; ``*`` stands for any letters."""
    return any(matcher(pattern).match(event_type) for pattern in patterns)


def broker_wants(priority: str) -> bool:
    """Return whether notifications of a priority are sent to the message broker."""
    return bool(settings.NOTIFICATION_URL) and priority in LEVELS[settings.NOTIFICATION_LEVEL]


class Listeners:
    """The cached patterns of all subscriptions."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Clear the cache: the next change reads the table."""
        self.looked_at, self.patterns = -inf, frozenset[str]()

    def forget_on_commit(self) -> None:
        """Look into the table now, and again when what this transaction changes is there for all."""
        self.forget()
        transaction.on_commit(self.forget)

    def look(self) -> frozenset[str]:
        if monotonic() - self.looked_at >= SECONDS:
            found = Subscription.objects.enabled().values_list("event_types", flat=True)
            self.patterns = frozenset(pattern for patterns in found for pattern in patterns)
            self.looked_at = monotonic()
        return self.patterns

    @property
    def any(self) -> bool:
        """Return whether there is any receiver."""
        return (bool(settings.NOTIFICATION_URL) and bool(settings.NOTIFICATION_LEVEL)) or bool(self.look())

    def want(self, event_type: str, priority: str) -> bool:
        return broker_wants(priority) or matches(self.look(), event_type)


listeners = Listeners()


def forget(**_: object) -> None:
    listeners.forget()


setting_changed.connect(forget)
