"""How the message broker fares: what waits for it, and why."""

from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db.models import Count, Min
from django.utils import timezone

from watcher_site.models import Delivery, Notification, Service
from watcher_site.notifications.listeners import broker_wants
from watcher_site.silence import find_silence

UNANSWERED = timedelta(seconds=10)
"""How long something may wait before the broker is said not to answer, although no attempt has failed."""


class BrokerState(NamedTuple):
    """``problem`` is why what waits was not delivered yet; ``oldest`` is since when something waits."""

    enabled: bool
    waiting: int
    undelivered: int
    oldest: datetime | None
    problem: str | None

    @property
    def matters(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self.enabled or self.waiting or self.undelivered)


def broker_state() -> BrokerState:
    """Return how the broker fares, in four queries at most. What no relay has looked at waits as well."""
    own = Delivery.objects.filter(subscription=None).order_by()
    counts = {
        state: (number, oldest)
        for state, number, oldest in own.values_list("state").annotate(Count("pk"), Min("created_at"))
    }
    waiting = [counts[Delivery.State.PENDING]] if Delivery.State.PENDING in counts else []
    if settings.NOTIFICATION_URL:
        waiting += count_new()
    number, oldest = sum(count for count, _ in waiting), min((since for _, since in waiting), default=None)
    undelivered, _ = counts.get(Delivery.State.UNDELIVERED, (0, None))
    # What did not arrive is the oldest of what waits.
    problem = own.pending().order_by("pk").values_list("problem", flat=True).first()
    if settings.NOTIFICATION_URL and oldest:
        problem = " ".join(filter(None, [problem, find_silence(Service.RELAY)])) or find_hang(oldest)
    return BrokerState(bool(settings.NOTIFICATION_URL), number, undelivered, oldest, problem)


def count_new() -> list[tuple[int, datetime]]:
    """Return by priority how many notifications for the broker no relay has looked at, and since when."""
    new = Notification.objects.undispatched().order_by().values_list("priority")
    return [
        (number, oldest)
        for priority, number, oldest in new.annotate(Count("pk"), Min("created_at"))
        if broker_wants(priority)
    ]


def find_hang(oldest: datetime | None) -> str | None:
    """Return what is wrong where the broker takes so long that it may never answer."""
    if oldest is None or timezone.now() - oldest < UNANSWERED:
        return None
    return f"The broker has not answered yet: the oldest waits since {oldest:%Y-%m-%d %H:%M:%S} UTC."
