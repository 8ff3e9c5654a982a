"""``/v1/actions``: read, skip and signal actions, change reasons and dependencies, list events.

See docs/compatibility.md, "Actions".
"""

import re
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from actions.api.serializers import ActionEventsSerializer, ActionSerializer, SignalSerializer
from actions.event_details import DETAILS, conceal_faults, sees_details, sees_host
from actions.models import Action, ActionEvent
from actions.models.refusals import PERMISSIONS, Operation, WrongActionState
from actions.models.statuses import Status, sortable_former_state, status_condition, status_expression
from actions.operations.dependencies import FIELD, change_dependencies
from actions.operations.signals import signal_action
from actions.operations.skipping import WITH_LOCKED_PLAN, change_reason_locked, restore_locked, skip_locked
from actions.server_history import COLUMNS, event_values
from watcher_site import plugins
from watcher_site.api.bodies import Step, apply_patch, cannot_apply, divide, read_body, read_patch
from watcher_site.api.paging import read_limit, read_uuid, refuse_unknown_arguments
from watcher_site.api.serializers import Row
from watcher_site.api.versions import EXTENDED, used_by
from watcher_site.api.views import ComposedLookup, ResourceView
from watcher_site.database.records import parse_uuid
from watcher_site.refusals import Invalid

DIGITS = 18
SIGNAL = "signal_"
PARAMETERS = [
    OpenApiParameter("limit", {"type": "integer", "minimum": 1}, description="maximum number of entries"),
    OpenApiParameter(
        "marker", {"type": "integer", "minimum": 1}, description="id of the last event of the previous page"
    ),
]
EDGES = re.compile(rf"/{FIELD}(/(-|\d+))?")


class ActionView(ComposedLookup, ResourceView):
    serializer_class = ActionSerializer
    model = Action
    title = "Action"
    policy = "action"
    filters = ["action_plan_uuid", "audit_uuid", "name", "target", "action", "status"]
    repeatable = frozenset({"name", "target", "action", "status"})
    sort_keys = {
        "uuid": "uuid",
        "state": "state",
        "action_type": "action_type",
        "action_plan_uuid": "action_plan__uuid",
        "created_at": "created_at",
        "updated_at": "updated_at",
        "name": "name",
        "target": "target",
        "action": "action_type",
        "status": "status",
    }
    sort_keys_formerly = {"state": (EXTENDED, "former_state")}
    sort_expressions = {"status": status_expression, "former_state": sortable_former_state}
    filter_schemas = {"status": {"enum": Status.values}}
    arguments_since = dict.fromkeys(("name", "target", "action", "status", "sort"), EXTENDED)
    identifiers = ("uuid", "name", "short id")
    identifiers_since = {"name": EXTENDED, "short id": EXTENDED}
    permissions_required = {"partial_update": "", "signal": PERMISSIONS[Operation.CANCEL]}
    bodies = {"signal": SignalSerializer}
    answers = {"signal": (202, ActionSerializer), "events": (200, ActionEventsSerializer)}
    actions_since = {"partial_update": (1, 5), "signal": EXTENDED, "events": (1, 8)}
    arguments = {"events": PARAMETERS}
    history_events_by_state = {"SKIPPED": "action.skip", "PENDING": "action.restore"}
    example_step = {"op": "replace", "path": "/state", "value": "SKIPPED"}

    def read_named(self: Any, read: Callable[..., list[Any]], identifier: str) -> list[Any]:
        """Read by UUID, then by name, then by a prefix of the UUID.

        See docs/compatibility.md, "Lookup and lists of actions".

        Raises:
            Invalid: several actions match.
        """
        if used_by(self.request) < EXTENDED:
            return read(uuid=read_uuid(identifier, "action_uuid"))
        uuid = parse_uuid(identifier)
        actions = read(uuid=uuid) if uuid else []
        if actions:
            return actions
        uuid = self.get_queryset().identified_by(identifier)
        return read(uuid=uuid) if uuid else []

    def find_present(self, identifier: str) -> Any:
        """Return the action in the path, or None. A patch locks the row of its plan, and reads the action once."""
        if self.action != "partial_update":
            return super().find_present(identifier)
        found = self.read_named(WITH_LOCKED_PLAN.rows, identifier)
        return found[0] if found else None

    def conceal(self, rows: list[Row]) -> None:
        if not sees_details(self.request.user):
            conceal_faults(rows)

    def filter_action_plan_uuid(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        if "audit_uuid" in self.request.query_params:
            raise Invalid("Filtering actions on both audit and action-plan is prohibited")
        return queryset.filter(action_plan__uuid=read_uuid(value, "action_plan_uuid"))

    def filter_audit_uuid(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        return queryset.filter(action_plan__audit__uuid=read_uuid(value, "audit_uuid"))

    def filter_name(self, queryset: QuerySet[Any], values: list[str]) -> QuerySet[Any]:
        return queryset.filter(name__in=values)

    def filter_target(self, queryset: QuerySet[Any], values: list[str]) -> QuerySet[Any]:
        return queryset.filter(target__in=values)

    def filter_action(self, queryset: QuerySet[Any], values: list[str]) -> QuerySet[Any]:
        return queryset.filter(action_type__in=known("action", values, plugins.load("ACTION_TYPES")))

    def filter_status(self, queryset: QuerySet[Any], values: list[str]) -> QuerySet[Any]:
        return queryset.filter(status_condition([Status(value) for value in known("status", values, Status.values)]))

    def partial_update(self, request: Request, identifier: str) -> Response:
        """Skip a PENDING action, or change the reason of a SKIPPED one (from 1.5).

        From 1.12 also restore an action that a user skipped, or change its dependencies, until its plan begins.
        """
        edges, fields = split(request.data) if used_by(request) >= EXTENDED else ([], request.data)
        changes = read_changes(fields)
        if used_by(request) < self.actions_since["partial_update"]:
            raise ParseError("API microversion 1.5 or higher is required.")
        with transaction.atomic():
            action = self.get_object(request, identifier)
            if changes or not edges:
                self.require(request, PERMISSIONS[Operation.SKIP])
            if edges:
                self.require(request, PERMISSIONS[Operation.CHANGE_DEPENDENCIES])
                change_dependencies(action.uuid, partial(apply_edges, edges))
                action = self.get_object(request, identifier)
            if changes:
                self.change(action, changes)
        return Response(self.show(action))

    def change(self, action: Action, changes: dict[str, Any]) -> None:
        """Skip or restore an action of a locked plan, or change the reason of its skip, as a patch requests.

        Raises:
            Conflict: the state of the action or of its plan does not allow it.
            Invalid: the message is too long, or not allowed.
        """
        is_former = used_by(self.request) < EXTENDED
        reason, state = changes.get("status_message"), changes.get("state")
        try:
            if state == Action.State.PENDING and not is_former:
                if reason:
                    raise Invalid(
                        "Invalid input for field/attribute status_message. An action that is restored has none."
                    )
                restore_locked([action], is_alone=True)
            elif state not in (None, Action.State.SKIPPED):
                raise WrongActionState(action, state)
            elif state is None or (action.state == Action.State.SKIPPED and "status_message" in changes):
                change_reason_locked(action, reason)
            else:
                skip_locked([action], self.request.user.get_username(), reason, is_alone=True)
        except WrongActionState as refusal:
            raise (refusal.as_before_suspension() if is_former else refusal) from None

    def signal(self, request: Request, identifier: str) -> Response:
        """Send a signal to an action: CANCEL, SUSPEND or RESUME. From 1.12."""
        self.require_version(request)
        action = self.get_object(request, identifier)
        signal = Action.Signal(read_body(request, SignalSerializer)["signal"])
        return Response(self.show(signal_action(action.uuid, signal, request.user.get_username())), 202)

    def events(self, request: Request, identifier: str) -> Response:
        """List the events of an action, the newest first. From 1.8."""
        self.require_version(request)
        row = self.get_row(request, identifier)
        events = ActionEvent.objects.filter(action__uuid=row["uuid"])
        return Response(read_events(request, events, f"{self.host()}/v1/actions/{row['uuid']}/events"))


def known(argument: str, values: list[str], allowed: Collection[str]) -> list[str]:
    """Return the values of a filter.

    Raises:
        Invalid: a value is not allowed.
    """
    for value in values:
        if value not in allowed:
            raise Invalid(f"Invalid {argument}: {value}. It must be one of {', '.join(allowed)}.")
    return values


def split(document: Any) -> tuple[list[Step], Any]:
    """Return the operations of a patch that change the dependencies of an action, and the rest of the patch."""
    if not isinstance(document, list):
        return [], document
    edges, fields = divide(document, is_edge)
    return read_patch(edges), fields


def is_edge(step: Any) -> bool:
    return isinstance(step, dict) and EDGES.fullmatch(str(step.get("path"))) is not None


def apply_edges(edges: list[Step], current: Sequence[UUID]) -> list[UUID]:
    """Return the dependencies of an action after these operations of a patch.

    Raises:
        Invalid: an operation cannot be applied, or its result is not a list of UUIDs.
    """
    changed = apply_patch({FIELD: [str(uuid) for uuid in current]}, edges).get(FIELD, [])
    if not isinstance(changed, list):
        raise Invalid(f"Invalid input for field/attribute {FIELD}. It must be a list of UUIDs.")
    return [read_uuid(str(value), FIELD) for value in changed]


def read_changes(document: Any) -> dict[str, Any]:
    """Return the state and the message that a patch requests."""
    paths = ("/state", "/status_message")
    patch = read_patch(document, allowed=paths, mandatory=paths)
    changes = {step["path"][1:]: step["value"] for step in patch}
    if "state" in changes:
        # Some clients send ``skipped``.
        state = str(changes["state"]).upper()
        if state not in Action.State.values:
            raise cannot_apply(patch, f"Invalid state: {changes['state']}")
        changes["state"] = state
    if not isinstance(changes.get("status_message", ""), str | None):
        raise Invalid("Invalid input for field/attribute status_message. It must be a string or null.")
    return changes


def read_events(request: Request, events: QuerySet[ActionEvent], path: str) -> Row:
    """Return a page of an action's events, the newest first, with one query, and another one for a marker.

    Raises:
        Invalid: an invalid limit or marker, or an unknown argument.
    """
    refuse_unknown_arguments(request.query_params, ("limit", "marker"))
    limit = read_limit(request.query_params.get("limit"))
    rows = list(
        older_than_marker(events, request.query_params).order_by("-pk").values("pk", "attempt", *COLUMNS)[:limit]
    )
    host, details = sees_host(request.user), used_by(request) >= DETAILS and sees_details(request.user)
    response: Row = {"events": [api_values(event, host, details) for event in rows]}
    if len(rows) == limit:
        response["next"] = f"{path}?limit={limit}&marker={rows[-1]['pk']}"
    return response


def older_than_marker(events: QuerySet[ActionEvent], query: QueryDict) -> QuerySet[ActionEvent]:
    """Select the events that are older than the marker, which must be one of them. This takes another query."""
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
        # The details of a signal are the name of the user who sent it.
        shown["details"] = event["details"] if values["event"].startswith(SIGNAL) else values["details"]
    return shown
