"""The columns of deliveries that a relay reads: plain tuples, as it reads thousands a second."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from watcher_site.models import Delivery, Notification

OWN = ("pk", "line", "attempts")


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
# As texts: Django would read them with the standard library, which takes several times as long.
STRUCTURED = tuple(Cast(f"notification__{name}", TextField()) for name in NotificationRow._fields[-2:])


def read_deliveries(deliveries: QuerySet[Delivery]) -> list[PendingDelivery]:
    """Return deliveries in their order, in one query."""
    return [make_delivery(row) for row in deliveries.values_list(*OWN, *PLAIN, *STRUCTURED)]


def make_delivery(row: Sequence[Any]) -> PendingDelivery:
    *plain, snapshot, fault = row[len(OWN) :]
    pk, line, attempts = row[: len(OWN)]
    return PendingDelivery(
        pk, line, attempts, NotificationRow._make([*plain, parse_json(snapshot), parse_json(fault)])
    )


def parse_json(text: str | None) -> Any:
    return None if text is None else orjson.loads(text)
