"""The state of the message broker: the number of pending deliveries, and the reason."""

from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db.models import Count, Min
from django.utils import timezone

from watcher_site.models import Delivery, Notification, Service
from watcher_site.notifications import messages
from watcher_site.outbox.writing import broker_wants
from watcher_site.processes.service_health import find_inactive

UNANSWERED = timedelta(seconds=10)
"""How long a notification may wait before the broker is reported as not answering, although no attempt has failed."""


class BrokerState(NamedTuple):
    """The state of the broker, with the reason why notifications wait (``problem``).

    ``oldest`` is the time of the oldest waiting notification.
    """

    enabled: bool
    waiting: int
    undelivered: int
    oldest: datetime | None
    problem: str | None

    @property
    def matters(self) -> bool:
        """Return whether there is anything to show."""
        return bool(self.enabled or self.waiting or self.undelivered)


def broker_state() -> BrokerState:
    """Return the state of the broker, including undispatched notifications, with up to four queries."""
    rows = Delivery.objects.filter(subscription=None).order_by()
    counts = {
        state: (number, oldest)
        for state, number, oldest in rows.values_list("state").annotate(Count("pk"), Min("created_at"))
    }
    waiting = [counts[Delivery.State.PENDING]] if Delivery.State.PENDING in counts else []
    if settings.NOTIFICATION_URL:
        waiting += count_new()
    number, oldest = sum(count for count, _ in waiting), min((since for _, since in waiting), default=None)
    undelivered, _ = counts.get(Delivery.State.UNDELIVERED, (0, None))
    # The oldest pending delivery has the problem of the last attempt.
    problem = rows.pending().order_by("pk").values_list("problem", flat=True).first()
    if settings.NOTIFICATION_URL and oldest:
        inactive = find_inactive(Service.RELAY)
        if problem and inactive:
            problem = messages.PROBLEM_WITHOUT_RELAY.fill(problem=problem, inactive=inactive)
        problem = problem or inactive or find_hang(oldest)
    return BrokerState(bool(settings.NOTIFICATION_URL), number, undelivered, oldest, problem)


def count_new() -> list[tuple[int, datetime]]:
    """Return the number of undispatched notifications for the broker, and the time of the oldest, by priority."""
    new = Notification.objects.undispatched().order_by().values_list("priority")
    return [
        (number, oldest)
        for priority, number, oldest in new.annotate(Count("pk"), Min("created_at"))
        if broker_wants(priority)
    ]


def find_hang(oldest: datetime | None) -> str | None:
    """Return the problem if the broker has not responded for too long, or None."""
    if oldest is None or timezone.now() - oldest < UNANSWERED:
        return None
    return messages.BROKER_SILENT.fill(time=f"{oldest:%Y-%m-%d %H:%M:%S}")
