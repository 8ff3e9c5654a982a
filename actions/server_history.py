"""The history of operations on servers, Nova's instance actions: recording, retention, lists and representation."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from hashlib import sha224
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from actions.models import Action, ActionEvent
from actions.models.instance_actions import InstanceAction, request_id_of
from cluster.models import Server
from watcher_site.refusals import Invalid, NotFound
from watcher_site.request_context import CallingContext, unseal

SINCE, BEFORE = "changes-since", "changes-before"
ARGUMENTS = ("limit", "marker", SINCE, BEFORE)
# Nova's format of times: UTC without a zone.
TIME = "%Y-%m-%dT%H:%M:%S.%f"
# More digits than any limit.
DIGITS = 12
COLUMNS = ("event", "start_time", "finish_time", "result", "details", "host")
BATCH = 500
KEPT = ("kept_events", "message", "updated_at", "user_id", "project_id")
Row = dict[str, Any]


def record_request(server: UUID, verb: str, caller: CallingContext, action: Action | None = None) -> None:
    """Record a user's request for an operation on a server, with its action, if there is one."""
    request_id = caller.get("request_id")
    if action is None and request_id is None:
        return
    InstanceAction.objects.bulk_create(
        [
            InstanceAction(
                server_uuid=server,
                action=action,
                verb=verb,
                request_id=request_id or request_id_of(action.uuid),  # type: ignore[union-attr]
                user_id=caller.identity or None,
                project_id=caller.get("project"),
            )
        ],
        ignore_conflicts=True,
    )


def new_operation(action: Action, began: datetime | None, server: str, verb: str) -> Sequence[InstanceAction]:
    """Return a new record, with the id of the request if a user requested this action individually."""
    return [operation_of(action, began, server, verb, individual_request(action))]


def operation_of(
    action: Action, began: datetime | None, server: str, verb: str, request_id: str | None = None
) -> InstanceAction:
    """Return the unsaved record of the operation of an action on a server.

    Args:
        began: the time of its first event: an operation begins with the check that it is possible.
    """
    identifier, start = request_id or request_id_of(action.uuid), began or timezone.now()
    return InstanceAction(server_uuid=UUID(server), action=action, verb=verb, request_id=identifier, start_time=start)


def individual_request(action: Action) -> str | None:
    """Return the id of the request in which a user requested this action individually, with one or two queries."""
    if action.derived_from_id is not None:
        return None
    further = Action.objects.filter(action_plan=action.action_plan_id, derived_from=None).exclude(pk=action.pk)
    caller = CallingContext() if further.exists() else find_caller(action)
    # The request of an audit is that of all its plans.
    return caller.get("request_id") if "user" in caller else None


def find_caller(action: Action) -> CallingContext:
    """Return the user or audit on whose behalf an action is executed; empty if its plan was started without one."""
    rows = Action.objects.filter(pk=action.pk).order_by()
    sealed = rows.values_list("action_plan__context", flat=True).first()
    return unseal(sealed) if sealed else CallingContext()


def keep_operations(actions: QuerySet[Action]) -> None:
    """Copy the data of operations on servers from actions and plans that are about to be deleted."""
    queryset: Any = InstanceAction.objects.in_full().filter(action__in=actions).order_by("pk")
    last = 0
    while batch := list(queryset.filter(pk__gt=last)[:BATCH]):
        last = batch[-1].pk
        events = events_by_action([operation.action_id for operation in batch])
        for operation in batch:
            operation.kept_events = events[operation.action_id]
            operation.message, operation.updated_at = operation.outcome, operation.changed_at
            operation.user_id, operation.project_id = operation.by, operation.project
        InstanceAction.objects.bulk_update(batch, KEPT)


def events_by_action(actions: list[int]) -> dict[int, list[Row]]:
    events: dict[int, list[Row]] = defaultdict(list)
    queryset = ActionEvent.objects.filter(action__in=actions).order_by("-start_time", "-pk")
    for event in queryset.values("action_id", *COLUMNS):
        events[event["action_id"]].append(event_values(event))
    return events


def expired_operations(cutoff: datetime) -> QuerySet[InstanceAction]:
    """Return the operations on servers that were deleted until a time or have no row, and those too old to keep."""
    servers = Server.objects.filter(uuid=OuterRef("server_uuid"))
    deleted, unknown = Exists(servers.filter(deleted_at__lte=cutoff)), ~Exists(servers)
    condition = deleted | Q(unknown, start_time__lte=cutoff)
    if settings.SERVER_EVENT_AGE:
        condition |= Q(start_time__lte=timezone.now() - settings.SERVER_EVENT_AGE)
    found: QuerySet[InstanceAction] = InstanceAction.objects.filter(condition)
    return found


@dataclass(frozen=True)
class ListQuery:
    """The query arguments of a list: the number of entries, the request id to continue after, the times."""

    limit: int
    marker: str | None = None
    since: datetime | None = None
    before: datetime | None = None


def read_query(query: Mapping[str, str]) -> ListQuery:
    """Return the query arguments of a list.

    Raises:
        Invalid: an invalid limit or time, or times in the wrong order.
    """
    since, before = (read_time(query, name) for name in (SINCE, BEFORE))
    if since and before and since > before:
        raise Invalid(f"The value of {SINCE} must be less than or equal to {BEFORE}.")
    return ListQuery(read_limit(query.get("limit")), query.get("marker"), since, before)


def read_limit(text: str | None) -> int:
    """Return a limit. 0 is allowed, and only checks the permission."""
    if text is None:
        return settings.API_MAX_LIMIT
    if not (text.isascii() and text.isdigit()):
        raise Invalid(f"Invalid input for field/attribute limit. Value: '{text}'. It must be an integer from 0.")
    digits = text.lstrip("0")
    return settings.API_MAX_LIMIT if len(digits) > DIGITS else min(int(digits or 0), settings.API_MAX_LIMIT)


def read_time(query: Mapping[str, str], name: str) -> datetime | None:
    """Parse a time in ISO 8601, in UTC if it has no offset."""
    text = query.get(name)
    if text is None:
        return None
    try:
        # A plus sign that was not encoded arrives as a space.
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


def read_list(server: UUID, arguments: ListQuery) -> list[InstanceAction]:
    """Return a page of the operations on a server, the newest first, with one query, and another one for a marker.

    Raises:
        Invalid: the marker is not a request on this server.
    """
    queryset: Any = InstanceAction.objects.of(server).in_full()
    if arguments.since:
        queryset = queryset.filter(changed_at__gte=arguments.since)
    if arguments.before:
        queryset = queryset.filter(changed_at__lte=arguments.before)
    if arguments.marker is not None:
        last = InstanceAction.objects.of(server).filter(request_id=arguments.marker).first()
        if last is None:
            raise Invalid(f"marker [{arguments.marker}] not found")
        queryset = queryset.filter(Q(start_time__lt=last.start_time) | Q(start_time=last.start_time, pk__lt=last.pk))
    return list(queryset[: arguments.limit])


def find_one(server: UUID, request_id: str) -> InstanceAction:
    """Return the operation on a server in a request, with one query. Raises: `NotFound`."""
    operation: InstanceAction | None = (
        InstanceAction.objects.of(server).in_full().filter(request_id=request_id).first()
    )
    if operation is None:
        raise NotFound(f"Action {request_id} not found")
    return operation


def next_query(
    arguments: ListQuery, query: Mapping[str, str], page: Sequence[InstanceAction]
) -> dict[str, str] | None:
    """Return the query arguments of the next page, or None if this page is not full."""
    if not page or len(page) < arguments.limit:
        return None
    parameters = {name: query[name] for name in ("limit", SINCE, BEFORE) if name in query}
    return {**parameters, "marker": page[-1].request_id}


def operation_values(operation: InstanceAction) -> Row:
    """Return the JSON values of an operation, without its events."""
    return {
        "action": operation.verb,
        "instance_uuid": str(operation.server_uuid),
        "request_id": operation.request_id,
        "user_id": operation.by,  # type: ignore[attr-defined]
        "project_id": operation.project,  # type: ignore[attr-defined]
        "start_time": format_time(operation.start_time),
        "updated_at": format_time(operation.changed_at),  # type: ignore[attr-defined]
        "message": operation.outcome,  # type: ignore[attr-defined]
    }


def events_of_operation(operation: InstanceAction) -> list[Row]:
    """Return the events of an operation, the newest first, with one query, or none if they were purged."""
    if operation.action_id is None:
        return list(operation.kept_events or [])
    events = ActionEvent.objects.filter(action=operation.action_id).order_by("-start_time", "-pk")
    return [event_values(event) for event in events.values(*COLUMNS)]


def event_values(event: Mapping[str, Any]) -> Row:
    """Return the JSON values of an event, with the details of faults only (docs/compatibility.md, "Event details")."""
    is_fault = event["result"] in ActionEvent.FAULTS
    return {
        "event": event["event"],
        "start_time": format_time(event["start_time"]),
        "finish_time": format_time(event["finish_time"]),
        "result": event["result"],
        "details": event["details"] if is_fault else None,
        "host": event["host"],
    }


def visible_events(events: Iterable[Row], *, project: str, host: bool, details: bool) -> list[Row]:
    """Return events with the names of hosts and the reasons of failures only for users who may see these.

    Args:
        project: the project of the server, from which `host_id` is derived.
    """
    return [visible_event(event, project, host, details) for event in events]


def visible_event(event: Row, project: str, host: bool, details: bool) -> Row:
    visible = {name: event[name] for name in ("event", "start_time", "finish_time", "result")}
    visible["hostId"] = host_id(project, event["host"])
    if host:
        visible["host"] = event["host"] or None
    if details:
        visible["details"] = event["details"]
    return visible


def host_id(project: str, host: str) -> str:
    """Return Nova's hostId, which identifies a machine within a project without naming it."""
    return sha224(f"{project}{host}".encode()).hexdigest() if host else ""


def format_time(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).strftime(TIME) if moment else None
