"""The notifications that may be removed for good."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from watcher_site.models import Delivery, Notification


def settled_notifications(cutoff: datetime) -> QuerySet[Notification]:
    """Return those until then that nobody waits for.

    What was given up, or waits for a receiver that is switched off, is kept for some days: somebody may yet do
    something about it.
    """
    waiting = Delivery.objects.awaited().filter(notification=OuterRef("pk"))
    kept = Delivery.objects.filter(
        notification=OuterRef("pk"), created_at__gt=timezone.now() - timedelta(days=settings.UNDELIVERED_DAYS)
    )
    old = Notification.objects.filter(is_dispatched=True, created_at__lte=cutoff)
    settled: QuerySet[Notification] = old.filter(~Exists(waiting), ~Exists(kept))
    return settled
