"""The representation of actions, their events and signals in the API."""

from typing import Any

from django.db.models import Case, F, OuterRef, Value, When
from rest_framework import serializers

from actions.event_details import DETAILS
from actions.models import Action, ActionEvent, ActionParent
from actions.models.statuses import Status, former_state, status_expression
from watcher_site import plugins
from watcher_site.api.serializers import ResourceSerializer, Row, links_field
from watcher_site.api.versions import EXTENDED, Version
from watcher_site.database.expressions import JSONArray, UUIDText

EXCLUSIONS: Version = (1, 13)
TIME = "UTC, such as 2026-11-20T22:55:41.000000"
NEW = (
    *("name", "target", "status", "action", "cause", "owner", "interval", "timeout", "start_time", "end_time"),
    "due_time",
    *("status_reason", "control", "inputs", "outputs", "depends_on", "depended_by", "data"),
)
SUCCEEDED = "Action completed successfully."
# The causes of an action: a request of a user or an audit, or another action.
RPC_REQUEST, DERIVED_ACTION = "RPC Request", "Derived Action"
# Properties with two names, Senlin's and Watcher's (docs/compatibility.md, "Action properties").
SAME = {
    "action": "action_type",
    "inputs": "input_parameters",
    "depends_on": "parents",
}


def uuids(of: str, other: str) -> JSONArray:
    """Return the UUIDs of the actions at the other end of an action's dependencies."""
    edges = ActionParent.objects.filter(**{of: OuterRef("pk")}).order_by(other)
    return JSONArray(edges.values(value=UUIDText(f"{other}__uuid")))


class ActionSerializer(ResourceSerializer):
    uuid = serializers.UUIDField()
    state = serializers.ChoiceField(Action.State.choices)
    action_type = serializers.CharField()
    action_plan_uuid = serializers.UUIDField()
    parents = serializers.ListField(child=serializers.UUIDField())
    links = links_field()
    name = serializers.CharField()
    target = serializers.CharField(allow_null=True, help_text="the resource that the action changes, usually a UUID")
    status = serializers.ChoiceField(Status.choices)
    description = serializers.CharField(help_text="the description of the action type; empty if the type is unknown")
    input_parameters = serializers.DictField()
    status_message = serializers.CharField(allow_null=True)
    action = serializers.CharField(help_text="the same as action_type")
    cause = serializers.ChoiceField([RPC_REQUEST, DERIVED_ACTION])
    owner = serializers.IntegerField(allow_null=True, help_text="the id of the service that executes the action")
    interval = serializers.IntegerField(help_text="seconds between repetitions; 0: the action is not repeated")
    timeout = serializers.IntegerField(allow_null=True, help_text="seconds; null or 0: the default of the site")
    start_time = serializers.DateTimeField(allow_null=True, help_text="time at which the last execution began")
    end_time = serializers.DateTimeField(allow_null=True, help_text="time at which the last execution ended")
    due_time = serializers.DateTimeField(allow_null=True, help_text="earliest time of the next execution")
    status_reason = serializers.CharField(
        allow_null=True, help_text="status_message, or a message of success if there is none"
    )
    control = serializers.ChoiceField(
        Action.Signal.choices, allow_null=True, help_text="the signal that the action has not processed yet"
    )
    inputs = serializers.DictField(help_text="the same as input_parameters")
    outputs = serializers.DictField(help_text="the result, or the error if the action failed")
    depends_on = serializers.ListField(child=serializers.UUIDField(), help_text="the same as parents")
    depended_by = serializers.ListField(child=serializers.UUIDField())
    data = serializers.DictField(  # type: ignore[assignment]
        help_text="data that the action type stores between attempts"
    )
    exclusion_uuid = serializers.UUIDField(allow_null=True, help_text="the exclusion that skipped the action")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        collection = "actions"
        short = ("uuid", "state", "action_type", "action_plan_uuid", "parents", "links", "name", "target", "status")
        since = {"status_message": (1, 5), **dict.fromkeys(NEW, EXTENDED), "exclusion_uuid": EXCLUSIONS}
        columns = {
            "action_plan_uuid": "action_plan__uuid",
            "exclusion_uuid": "exclusion__uuid",
            "parents": uuids("child", "parent"),
            "depended_by": uuids("parent", "child"),
            "status": status_expression(),
            "due_time": Case(When(state=Action.State.PENDING, then=F("due_time"))),
            "status_reason": Case(
                When(state=Action.State.SUCCEEDED, status_message=None, then=Value(SUCCEEDED)),
                default=F("status_message"),
            ),
            "cause": Case(When(derived_from=None, then=Value(RPC_REQUEST)), default=Value(DERIVED_ACTION)),
        }
        formerly = {"state": (EXTENDED, former_state())}
        json = ("parents", "input_parameters", "depended_by", "outputs", "data")
        computed = ("links", "description")
        same = SAME

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        if self.context.get("version", EXTENDED) < EXTENDED:
            names = [state for state in Action.State if state != Action.State.SUSPENDED]
            fields["state"] = serializers.ChoiceField(names)
        return fields

    @classmethod
    def add_description(cls, rows: list[Row]) -> None:
        types = plugins.load("ACTION_TYPES")
        for row in rows:
            name = row["action_type"]
            row["description"] = types[name].description if name in types else ""


class ActionEventSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    event = serializers.CharField(help_text="pre_condition, execute, post_condition, recover, abort, revert …")
    attempt = serializers.IntegerField(help_text="number of the attempt, from 1; 0: before the first attempt")
    start_time = serializers.CharField(help_text=TIME)
    finish_time = serializers.CharField(allow_null=True, help_text="null until the event ends")
    result = serializers.ChoiceField(
        ActionEvent.Result.choices, allow_null=True, help_text="null until the event ends"
    )
    host = serializers.CharField(required=False, allow_null=True, help_text="only for users who may see all actions")
    details = serializers.CharField(
        required=False,
        allow_null=True,
        help_text="the error or the sender of the signal; only for users with permission to see details",
    )

    since = {"details": DETAILS}


class ActionEventsSerializer(serializers.Serializer[Any]):
    events = ActionEventSerializer(many=True)
    next = serializers.CharField(required=False, help_text="URL of the next page, if this page is full")

    since: dict[str, Version] = {}


class SignalSerializer(serializers.Serializer[Any]):
    """The body of a signal to an action or to a plan."""

    signal = serializers.ChoiceField(
        Action.Signal.choices, error_messages={"invalid_choice": f"It must be one of {', '.join(Action.Signal)}."}
    )

    argument = "signal"
    since: dict[str, Version] = {}
