"""Lines of deliveries that a relay holds: each line holds one object's notifications for one receiver, in order."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from watcher_site.messages import cut
from watcher_site.models import Delivery, Service, Subscription
from watcher_site.notifications.rows import PendingDelivery, read_deliveries


def take(subscription: int | None, relay: Service, most: int = 1000) -> list[list[PendingDelivery]]:
    """Claim lines of a receiver that no living relay holds, and return each in order, up to ``most`` deliveries.

    The owner of the first delivery owns the line. Rows that another relay is claiming are skipped.

    Args:
        most: deliveries that are claimed at once.
    """
    held: set[UUID] = set()
    last = 0
    while window := look(subscription, last, most):
        waiting: dict[UUID, list[int]] = {}
        for key, line in window:
            if line not in held:
                waiting.setdefault(line, []).append(key)
        taken = claim([keys[0] for keys in waiting.values()], relay)
        if taken:
            return read_lines(key for keys in waiting.values() if keys[0] in taken for key in keys)
        # These lines are others', or wait for their time, with what comes later of them.
        held.update(waiting)
        last = window[-1][0]
    return []


def look(subscription: int | None, after: int, most: int) -> list[tuple[int, UUID]]:
    """Return keys and lines of what waits for a receiver, the oldest first."""
    waiting = Delivery.objects.pending().filter(subscription=subscription, pk__gt=after).order_by("pk")
    return list(waiting.values_list("pk", "line")[:most])


@transaction.atomic
def claim(heads: Sequence[int], relay: Service) -> set[int]:
    """Take those of the first of lines that are nobody's and may be tried now, and return their keys."""
    free = Delivery.objects.pending().free().due(timezone.now()).filter(pk__in=heads)
    taken = set(free.order_by("pk").select_for_update(skip_locked=True).values_list("pk", flat=True))
    Delivery.objects.filter(pk__in=taken).update(relay=relay)
    return taken


def read_lines(keys: Iterable[int]) -> list[list[PendingDelivery]]:
    lines: dict[UUID, list[PendingDelivery]] = {}
    for delivery in read_deliveries(Delivery.objects.pending().filter(pk__in=list(keys)).order_by("pk")):
        lines.setdefault(delivery.line, []).append(delivery)
    return list(lines.values())


def remove(delivered: Iterable[PendingDelivery]) -> None:
    """Remove what was delivered."""
    Delivery.objects.filter(pk__in=[delivery.pk for delivery in delivered]).delete()


def release(left: Iterable[PendingDelivery], relay: Service) -> None:
    """Release deliveries that were not sent, so that any relay may claim them."""
    Delivery.objects.filter(pk__in=[delivery.pk for delivery in left], relay=relay).update(relay=None)


def release_all(subscription: int | None, relay: Service) -> None:
    """Release all deliveries of a receiver that a relay holds."""
    Delivery.objects.filter(subscription=subscription, relay=relay).update(relay=None)


def pause_after(failures: int) -> timedelta:
    """Return how long to wait after so many failures: twice as long each time, up to a limit."""
    seconds = settings.WEBHOOK_PAUSE * 2 ** min(failures - 1, 30)
    return timedelta(seconds=min(seconds, settings.WEBHOOK_LONGEST_PAUSE))


def retry_or_give_up(delivery: PendingDelivery, problem: str, least: float = 0) -> bool:
    """Record why a notification was refused, and return whether it is tried again: otherwise it is given up.

    Args:
        least: the shortest pause, in seconds, that the receiver asks for.
    """
    attempts, now = delivery.attempts + 1, timezone.now()
    gives_up = attempts >= settings.WEBHOOK_ATTEMPTS
    pause = max(pause_after(attempts), timedelta(seconds=least))
    pending = Delivery.objects.pending().filter(pk=delivery.pk)
    if gives_up:
        pending.give_up(problem)
    else:
        pending.retry_at(problem, now + pause)
    return not gives_up


def note_success(subscription: int, moment: datetime, problem: str | None = None) -> None:
    """Store that a receiver accepted a notification, and the problem with another one, if there was any."""
    Subscription.objects.filter(pk=subscription).update(
        failures=0, due_time=None, last_success=moment, problem=problem and cut(problem)
    )


def note_problem(tried: Iterable[PendingDelivery], problem: str) -> None:
    """Write why what waits for the broker did not arrive: it has no row of its own."""
    Delivery.objects.pending().filter(pk__in=[delivery.pk for delivery in tried]).update(
        problem=cut(problem), updated_at=timezone.now()
    )


def note_refusal(subscription: int, problem: str) -> None:
    Subscription.objects.filter(pk=subscription).update(problem=cut(problem))


@transaction.atomic
def note_silence(subscription: int, problem: str, tried: Iterable[PendingDelivery] = ()) -> int:
    """Write that a receiver does not answer: nothing is sent to it for a while that grows.

    When it did not answer so often as a notification is tried, all that waits for it is given up; returns how many
    these are. What comes later is tried after the longest pause.

    Args:
        tried: what it did not answer to.
    """
    now = timezone.now()
    Delivery.objects.pending().filter(pk__in=[delivery.pk for delivery in tried]).update(attempts=F("attempts") + 1)
    receiver = Subscription.objects.select_for_update(no_key=True).filter(pk=subscription)
    for failures in receiver.values_list("failures", flat=True):
        receiver.update(failures=failures + 1, due_time=now + pause_after(failures + 1), problem=cut(problem))
        waiting = Delivery.objects.pending().filter(subscription=subscription)
        return waiting.give_up_untried(problem) if failures + 1 >= settings.WEBHOOK_ATTEMPTS else 0
    return 0


def resend_deliveries(deliveries: Any = None) -> int:
    """Resend the dead letters of a queryset, or all, and return their number.

    Other deliveries stay as they are.
    """
    chosen = (Delivery.objects.all() if deliveries is None else deliveries).undelivered().order_by()
    with transaction.atomic():
        receivers = set(chosen.exclude(subscription=None).values_list("subscription", flat=True))
        number = chosen.resend()
        # Who wants it now does not wait for the end of a pause.
        Subscription.objects.filter(pk__in=receivers).update(failures=0, due_time=None)
    return number
