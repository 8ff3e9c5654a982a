"""Deliveries: claims, releases, retries, dead letters, and notifications that can be purged.

A line contains one object's notifications for one receiver, in order. Relays read deliveries as tuples, as they read
thousands per second. The API, the console and the commands resend and delete dead letters.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet, TextField
from django.db.models.functions import Cast
from django.utils import timezone

from watcher_site.history import record
from watcher_site.messages import cut
from watcher_site.models import Delivery, Notification, Service, Subscription
from watcher_site.notifications import messages
from watcher_site.refusals import Conflict

COLUMNS = ("pk", "line", "attempts")


class NotificationRow(NamedTuple):
    """A notification."""

    pk: int
    uuid: UUID
    kind: str
    event_type: str
    priority: str
    object_uuid: UUID
    old_state: str | None
    host: str
    person: str | None
    request_id: str
    created_at: datetime
    snapshot: Any
    fault: Any


SentNotification = Notification | NotificationRow


class PendingDelivery(NamedTuple):
    """A delivery with its notification."""

    pk: int
    line: UUID
    attempts: int
    notification: NotificationRow


PLAIN = tuple(f"notification__{name}" for name in NotificationRow._fields[:-2])
# Read as texts and parsed with orjson, several times as fast as Django with the standard library.
STRUCTURED = tuple(Cast(f"notification__{name}", TextField()) for name in NotificationRow._fields[-2:])


def read_deliveries(deliveries: QuerySet[Delivery]) -> list[PendingDelivery]:
    """Return deliveries in their order, in one query."""
    return [make_delivery(row) for row in deliveries.values_list(*COLUMNS, *PLAIN, *STRUCTURED)]


def make_delivery(row: Sequence[Any]) -> PendingDelivery:
    *plain, snapshot, fault = row[len(COLUMNS) :]
    pk, line, attempts = row[: len(COLUMNS)]
    return PendingDelivery(
        pk, line, attempts, NotificationRow._make([*plain, parse_json(snapshot), parse_json(fault)])
    )


def parse_json(text: str | None) -> Any:
    return None if text is None else orjson.loads(text)


def claim_deliveries(subscription: int | None, relay: Service, most: int = 1000) -> list[list[PendingDelivery]]:
    """Claim deliveries of a receiver for a relay, and return them in lines, one for each object, in order.

    The owner of the first delivery owns the line. Rows that another relay is claiming are skipped.

    Args:
        most: the number of deliveries that are read at once.
    """
    held: set[UUID] = set()
    last = 0
    while window := read_waiting(subscription, last, most):
        waiting: dict[UUID, list[int]] = {}
        for key, line in window:
            if line not in held:
                waiting.setdefault(line, []).append(key)
        taken = claim_heads([keys[0] for keys in waiting.values()], relay)
        if taken:
            return read_lines(key for keys in waiting.values() if keys[0] in taken for key in keys)
        # These lines have other owners or are not due, including their later deliveries.
        held.update(waiting)
        last = window[-1][0]
    return []


def read_waiting(subscription: int | None, after: int, most: int) -> list[tuple[int, UUID]]:
    """Return the keys and lines of the pending deliveries of a receiver, the oldest first."""
    waiting = Delivery.objects.pending().filter(subscription=subscription, pk__gt=after).order_by("pk")
    return list(waiting.values_list("pk", "line")[:most])


@transaction.atomic
def claim_heads(heads: Sequence[int], relay: Service) -> set[int]:
    """Claim the first deliveries of lines that no relay owns and that are due, and return their keys."""
    free = Delivery.objects.pending().unclaimed().due(timezone.now()).filter(pk__in=heads)
    taken = set(free.order_by("pk").select_for_update(skip_locked=True).values_list("pk", flat=True))
    Delivery.objects.filter(pk__in=taken).update(relay=relay)
    return taken


def read_lines(keys: Iterable[int]) -> list[list[PendingDelivery]]:
    lines: dict[UUID, list[PendingDelivery]] = {}
    for delivery in read_deliveries(Delivery.objects.pending().filter(pk__in=list(keys)).order_by("pk")):
        lines.setdefault(delivery.line, []).append(delivery)
    return list(lines.values())


def remove_delivered(delivered: Iterable[PendingDelivery]) -> None:
    """Delete the deliveries that were sent."""
    Delivery.objects.filter(pk__in=[delivery.pk for delivery in delivered]).delete()


def release(left: Iterable[PendingDelivery], relay: Service) -> None:
    """Release deliveries that were not sent, so that any relay may claim them."""
    Delivery.objects.filter(pk__in=[delivery.pk for delivery in left], relay=relay).update(relay=None)


def release_all(subscription: int | None, relay: Service) -> None:
    """Release all deliveries of a receiver that a relay owns."""
    Delivery.objects.filter(subscription=subscription, relay=relay).update(relay=None)


def pause_after(failures: int) -> timedelta:
    """Return the pause after a number of failures, which doubles up to a limit."""
    seconds = settings.WEBHOOK_PAUSE * 2 ** min(failures - 1, 30)
    return timedelta(seconds=min(seconds, settings.WEBHOOK_LONGEST_PAUSE))


def retry_or_give_up(delivery: PendingDelivery, problem: str, least: float = 0) -> bool:
    """Record the refusal of a notification, and return whether it is retried. Otherwise it becomes a dead letter.

    Args:
        least: the shortest pause, in seconds, that the receiver requests.
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


def record_success(subscription: int, moment: datetime, problem: str | None = None) -> None:
    """Record that a receiver accepted a notification, and the problem with another one, if there was any."""
    Subscription.objects.filter(pk=subscription).update(
        failures=0, due_time=None, last_success=moment, problem=problem and cut(problem)
    )


def record_problem(tried: Iterable[PendingDelivery], problem: str) -> None:
    """Record the problem of the broker on its pending deliveries, because the broker has no row of its own."""
    Delivery.objects.pending().filter(pk__in=[delivery.pk for delivery in tried]).update(
        problem=cut(problem), updated_at=timezone.now()
    )


def record_rejection(subscription: int, problem: str) -> None:
    Subscription.objects.filter(pk=subscription).update(problem=cut(problem))


@transaction.atomic
def record_no_answer(subscription: int, problem: str, tried: Iterable[PendingDelivery] = ()) -> int:
    """Record that a receiver does not respond, and pause it for a time that grows with each failure.

    After as many failures as a notification has attempts, all pending deliveries to it become dead letters, and their
    number is returned. Later ones are tried after the longest pause.

    Args:
        tried: the deliveries without a response.
    """
    now = timezone.now()
    Delivery.objects.pending().filter(pk__in=[delivery.pk for delivery in tried]).update(attempts=F("attempts") + 1)
    receiver = Subscription.objects.select_for_update(no_key=True).filter(pk=subscription)
    for failures in receiver.values_list("failures", flat=True):
        receiver.update(failures=failures + 1, due_time=now + pause_after(failures + 1), problem=cut(problem))
        waiting = Delivery.objects.pending().filter(subscription=subscription)
        return waiting.give_up_without_attempt(problem) if failures + 1 >= settings.WEBHOOK_ATTEMPTS else 0
    return 0


def resend_deliveries(deliveries: Any = None) -> int:
    """Resend the dead letters of a queryset, or all, and return their number.

    Other deliveries are not changed.
    """
    chosen = (Delivery.objects.all() if deliveries is None else deliveries).undelivered().order_by()
    with transaction.atomic():
        receivers = set(chosen.exclude(subscription=None).values_list("subscription", flat=True))
        number = chosen.resend()
        # A user's request ends the pause of the receiver.
        Subscription.objects.filter(pk__in=receivers).update(failures=0, due_time=None)
    return number


@transaction.atomic
def resend(delivery: Delivery) -> None:
    """Resend a dead letter.

    Raises:
        Conflict: it is no longer a dead letter.
    """
    if not resend_deliveries(Delivery.objects.filter(pk=delivery.pk)):
        raise Conflict(messages.BEING_SENT.text)
    record("undelivered.resend", delivery, details={"event_type": delivery.notification.event_type})


@transaction.atomic
def resend_all(chosen: QuerySet[Delivery] | None = None, filters: Mapping[str, str] | None = None) -> int:
    """Resend dead letters, and return their number.

    Args:
        chosen: the deliveries; all by default.
        filters: the filters that select them, for history.
    """
    number = resend_deliveries(chosen)
    if number:
        record("undelivered.resend", details={"number": number, **(filters or {})})
    return number


@transaction.atomic
def delete_dead_letter(delivery: Delivery) -> None:
    """Delete a dead letter.

    Raises:
        Conflict: it is no longer a dead letter.
    """
    number, _ = Delivery.objects.undelivered().filter(pk=delivery.pk).delete()
    if not number:
        raise Conflict(messages.BEING_SENT_AGAIN.text)
    record("undelivered.delete", delivery, details={"event_type": delivery.notification.event_type})


def settled_notifications(cutoff: datetime) -> QuerySet[Notification]:
    """Return the notifications until a time without open deliveries, which may be purged.

    Dead letters, and deliveries to a disabled receiver, are kept for `settings.UNDELIVERED_DAYS`, so that users can
    still resend them.
    """
    waiting = Delivery.objects.awaited().filter(notification=OuterRef("pk"))
    kept = Delivery.objects.filter(
        notification=OuterRef("pk"), created_at__gt=timezone.now() - timedelta(days=settings.UNDELIVERED_DAYS)
    )
    old = Notification.objects.filter(is_dispatched=True, created_at__lte=cutoff)
    settled: QuerySet[Notification] = old.filter(~Exists(waiting), ~Exists(kept))
    return settled
