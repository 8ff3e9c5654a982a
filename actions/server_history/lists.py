"""Lists of the operations on a server, in Nova's format: query arguments and entries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils.dateparse import parse_date, parse_datetime

from actions.models.instance_actions import InstanceAction
from watcher_site.refusals import Invalid, NotFound

SINCE, BEFORE = "changes-since", "changes-before"
ARGUMENTS = ("limit", "marker", SINCE, BEFORE)
# How Nova writes a time: in UTC, without saying so.
TIME = "%Y-%m-%dT%H:%M:%S.%f"
# So many digits make a number that is more than any limit.
DIGITS = 12

Row = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """The query arguments of a list: the number of entries, the request id to continue after, the times."""

    limit: int
    marker: str | None = None
    since: datetime | None = None
    before: datetime | None = None


def read_asked(query: Mapping[str, str]) -> Asked:
    """Return what a query asks for.

    Raises:
        Invalid: a limit or a time that is none, or times in the wrong order.
    """
    since, before = (read_time(query, name) for name in (SINCE, BEFORE))
    if since and before and since > before:
        raise Invalid(f"The value of {SINCE} must be less than or equal to {BEFORE}.")
    return Asked(read_limit(query.get("limit")), query.get("marker"), since, before)


def read_limit(text: str | None) -> int:
    """Return a limit: with 0 nobody wants more than to know whether they may ask."""
    if text is None:
        return settings.API_MAX_LIMIT
    if not (text.isascii() and text.isdigit()):
        raise Invalid(f"Invalid input for field/attribute limit. Value: '{text}'. It must be an integer from 0.")
    digits = text.lstrip("0")
    return settings.API_MAX_LIMIT if len(digits) > DIGITS else min(int(digits or 0), settings.API_MAX_LIMIT)


def read_time(query: Mapping[str, str], name: str) -> datetime | None:
    """Return a time of ISO 8601, which is in UTC where it does not say otherwise."""
    text = query.get(name)
    if text is None:
        return None
    try:
        # A plus sign that nobody encoded reaches us as a blank.
        moment = parse_datetime(text.replace(" ", "+") if text.count(" ") == 1 and "T" in text else text)
        if moment is None:
            moment = datetime.combine(day_of(text), time.min)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Invalid(
            f"Invalid input for field/attribute {name}. Value: '{text}'. It must be a time of ISO 8601."
        ) from None


def day_of(text: str) -> date:
    day = parse_date(text)
    if day is None:
        raise ValueError(text)
    return day


def read_list(server: UUID, asked: Asked) -> list[InstanceAction]:
    """Return a page of what was done to a server, the newest first: one query, and one more with a marker.

    Raises:
        Invalid: the marker is no request on this server.
    """
    found: Any = InstanceAction.objects.of(server).in_full()
    if asked.since:
        found = found.filter(changed_at__gte=asked.since)
    if asked.before:
        found = found.filter(changed_at__lte=asked.before)
    if asked.marker is not None:
        last = InstanceAction.objects.of(server).filter(request_id=asked.marker).first()
        if last is None:
            raise Invalid(f"marker [{asked.marker}] not found")
        found = found.filter(Q(start_time__lt=last.start_time) | Q(start_time=last.start_time, pk__lt=last.pk))
    return list(found[: asked.limit])


def find_one(server: UUID, request_id: str) -> InstanceAction:
    """Return what was done to a server in a request: one query. Raises: `NotFound`."""
    found: InstanceAction | None = InstanceAction.objects.of(server).in_full().filter(request_id=request_id).first()
    if found is None:
        raise NotFound(f"Action {request_id} not found")
    return found


def show(found: InstanceAction) -> Row:
    """Return an operation as it goes out, without its events."""
    return {
        "action": found.verb,
        "instance_uuid": str(found.server_uuid),
        "request_id": found.request_id,
        "user_id": found.by,  # type: ignore[attr-defined]
        "project_id": found.project,  # type: ignore[attr-defined]
        "start_time": written(found.start_time),
        "updated_at": written(found.changed_at),  # type: ignore[attr-defined]
        "message": found.outcome,  # type: ignore[attr-defined]
    }


def written(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).strftime(TIME) if moment else None


def next_query(asked: Asked, query: Mapping[str, str], page: Sequence[InstanceAction]) -> dict[str, str] | None:
    """Return the query arguments of the next page, or None if this page is not full."""
    if not page or len(page) < asked.limit:
        return None
    kept = {name: query[name] for name in ("limit", SINCE, BEFORE) if name in query}
    return {**kept, "marker": page[-1].request_id}
