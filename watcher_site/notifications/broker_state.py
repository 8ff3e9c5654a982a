"""How the message broker fares: what waits for it, and why."""

from datetime import datetime
from typing import NamedTuple

from django.conf import settings
from django.db.models import Count, Min

from watcher_site.models import Delivery


class BrokerState(NamedTuple):
    """``problem`` is why the last attempt came to nothing; ``oldest`` is since when something waits."""

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
    """Return how the broker fares, in two queries."""
    own = Delivery.objects.filter(subscription=None).order_by()
    counts = {
        state: (number, oldest)
        for state, number, oldest in own.values_list("state").annotate(Count("pk"), Min("created_at"))
    }
    waiting, oldest = counts.get(Delivery.State.PENDING, (0, None))
    undelivered, _ = counts.get(Delivery.State.UNDELIVERED, (0, None))
    # What did not arrive is the oldest of what waits.
    problem = own.pending().order_by("pk").values_list("problem", flat=True).first()
    return BrokerState(bool(settings.NOTIFICATION_URL), waiting, undelivered, oldest, problem)
