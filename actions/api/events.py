"""``/v1/actions/{id}/events``: what the phases of one action did, page by page."""

from typing import Any

from django.db.models import QuerySet
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request

from actions.event_details import DETAILS, sees_details, sees_host
from actions.models import ActionEvent
from actions.server_history import COLUMNS, event_values
from watcher_site.api.paging import read_limit, refuse_unknown_arguments
from watcher_site.api.serializers import Row
from watcher_site.api.versions import Version, used_by
from watcher_site.refusals import Invalid

TIME = "in UTC, like 2026-11-20T22:55:41.000000"
DIGITS = 18
SIGNAL = "signal_"
PARAMETERS = [
    OpenApiParameter("limit", {"type": "integer", "minimum": 1}, description="how many at most"),
    OpenApiParameter(
        "marker", {"type": "integer", "minimum": 1}, description="the id of the last event of the page before"
    ),
]


class ActionEventSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    event = serializers.CharField(help_text="pre_condition, execute, post_condition, recover, abort, revert …")
    attempt = serializers.IntegerField(help_text="in which execution of the action, from 1; 0: before the first")
    start_time = serializers.CharField(help_text=TIME)
    finish_time = serializers.CharField(allow_null=True, help_text="null while it runs")
    result = serializers.ChoiceField(ActionEvent.Result.choices, allow_null=True, help_text="null while it runs")
    host = serializers.CharField(required=False, allow_null=True, help_text="for those who see all actions")
    details = serializers.CharField(
        required=False,
        allow_null=True,
        help_text="why it failed, or who gave the signal, for those who have the right to be told",
    )

    since = {"details": DETAILS}


class ActionEventsSerializer(serializers.Serializer[Any]):
    events = ActionEventSerializer(many=True)
    next = serializers.CharField(required=False, help_text="the next page, where this one is full")

    since: dict[str, Version] = {}


def read_events(request: Request, events: QuerySet[ActionEvent], path: str) -> Row:
    """Return a page of an action's events, the newest first: one query, and one more with a marker.

    Raises:
        Invalid: a limit or a marker that is none, or another argument.
    """
    refuse_unknown_arguments(request.query_params, ("limit", "marker"))
    limit = read_limit(request.query_params.get("limit"))
    found = list(
        older_than_marker(events, request.query_params).order_by("-pk").values("pk", "attempt", *COLUMNS)[:limit]
    )
    host, details = sees_host(request.user), used_by(request) >= DETAILS and sees_details(request.user)
    answer: Row = {"events": [api_values(event, host, details) for event in found]}
    if len(found) == limit:
        answer["next"] = f"{path}?limit={limit}&marker={found[-1]['pk']}"
    return answer


def older_than_marker(events: QuerySet[ActionEvent], query: QueryDict) -> QuerySet[ActionEvent]:
    """Select the events that are older than the marker, which must be one of them. It takes one query more."""
    marker = query.get("marker")
    if marker is None:
        return events
    if not (marker.isascii() and marker.isdigit() and len(marker) <= DIGITS):
        raise Invalid(
            f"Invalid input for field/attribute marker. Value: '{marker:.40}'. It must be the id of an event."
        )
    if not events.filter(pk=int(marker)).exists():
        raise Invalid(f"marker [{marker}] not found")
    return events.filter(pk__lt=int(marker))


def api_values(event: Any, host: bool, details: bool) -> Row:
    values = event_values(event)
    shown = {"id": event["pk"], "event": values["event"], "attempt": event["attempt"]}
    shown |= {name: values[name] for name in ("start_time", "finish_time", "result")}
    if host:
        shown["host"] = values["host"] or None
    if details:
        # The details of a signal name the person who sent it.
        shown["details"] = event["details"] if values["event"].startswith(SIGNAL) else values["details"]
    return shown
