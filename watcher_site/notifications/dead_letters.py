"""Resend and delete dead letters, for the API, the console and the commands."""

from collections.abc import Mapping

from django.db import transaction
from django.db.models import QuerySet

from watcher_site.history import record
from watcher_site.models import Delivery
from watcher_site.notifications import deliveries
from watcher_site.refusals import Conflict


@transaction.atomic
def resend(delivery: Delivery) -> None:
    """Send one again. Raises: `Conflict`, if it is no dead letter any more."""
    if not deliveries.resend_deliveries(Delivery.objects.filter(pk=delivery.pk)):
        raise Conflict("It is being sent already.")
    record("undelivered.resend", delivery, details={"event_type": delivery.notification.event_type})


@transaction.atomic
def resend_all(chosen: QuerySet[Delivery] | None = None, filters: Mapping[str, str] | None = None) -> int:
    """Send many again, and return how many they are.

    Args:
        chosen: among which; all, where it is left out.
        filters: what they were chosen by, for history.
    """
    number = deliveries.resend_deliveries(chosen)
    if number:
        record("undelivered.resend", details={"number": number, **(filters or {})})
    return number


@transaction.atomic
def delete(delivery: Delivery) -> None:
    """Give one up for good. Raises: `Conflict`, if it is no dead letter any more."""
    number, _ = Delivery.objects.undelivered().filter(pk=delivery.pk).delete()
    if not number:
        raise Conflict("It is being sent again.")
    record("undelivered.delete", delivery, details={"event_type": delivery.notification.event_type})
