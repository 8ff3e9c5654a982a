"""``/v1/exclusions``: rules that skip actions, and tests of rules on plans."""

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from actions.api.serializers import EXCLUSIONS, ActionSerializer
from actions.exclusions.matching import Match
from actions.exclusions.records import (
    WRITABLE,
    attributes_of,
    change_exclusion,
    create_exclusion,
    delete_exclusion,
    draft_exclusion,
)
from actions.exclusions.rules import Rule
from actions.exclusions.targets import KINDS
from actions.models import Action
from actions.models.exclusions import NAME_LENGTH, TEXT_LENGTH, Exclusion
from plans.models import ActionPlan
from plans.operations.exclusion_trials import Trial, try_rule
from watcher_site.api.bodies import (
    FLAG,
    FlagField,
    TimeTextField,
    WindowField,
    apply_patch,
    read_attributes,
    read_body,
    read_patch,
)
from watcher_site.api.paging import read_limit, read_uuid, refuse_unknown_arguments
from watcher_site.api.serializers import ResourceSerializer, Row, links_field
from watcher_site.api.versions import Version
from watcher_site.api.views import NamedLookup, ResourceView
from watcher_site.refusals import Invalid, NotFound

RULE_FIELDS = ("action_types", "targets", "window", "zone", "expires_at", "enabled")
SWITCH = {"true": True, "false": False}
PAGING = [
    OpenApiParameter("limit", {"type": "integer", "minimum": 1}, description="maximum number of actions"),
    OpenApiParameter("marker", OpenApiTypes.UUID, description="last action of the previous page"),
]


class TargetsSerializer(serializers.Serializer[Any]):
    """The schema of targets in the OpenAPI document. `actions.exclusions.records` parses targets."""

    vars().update(
        {
            kind: serializers.ListField(
                child=serializers.CharField(), required=False, help_text=f"identifiers, each {form}"
            )
            for kind, (_, form) in KINDS.items()
        }
    )


@extend_schema_field(TargetsSerializer(allow_null=True))
class TargetsField(serializers.JSONField):
    """Unparsed targets. `actions.exclusions.records` validates them with more specific messages."""


class ExclusionSerializer(ResourceSerializer):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    owner = serializers.CharField(help_text="the person or team that is responsible for the rule")
    links = links_field()
    reason = serializers.CharField(help_text="reason, which excluded actions show")
    action_types = serializers.ListField(child=serializers.CharField(), help_text="empty: all action types")
    targets = TargetsSerializer(
        help_text="identifiers by kind; actions that affect one target of each kind are excluded"
    )
    window = WindowField(allow_null=True, help_text="hours in which the rule is in force; null: all hours")
    zone = serializers.CharField(help_text="time zone of the window")
    expires_at = serializers.DateTimeField(allow_null=True, help_text="time from which the rule is no longer in force")
    enabled = serializers.BooleanField(help_text="whether the rule is applied")
    is_in_force = serializers.BooleanField(help_text="whether the rule excludes actions that begin now")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        collection = "exclusions"
        short = ("uuid", "name", "owner", "enabled", "links")
        computed = ("is_in_force", "links")

    @classmethod
    def add_is_in_force(cls, rows: list[Row]) -> None:
        now = timezone.now()
        for row in rows:
            rule = Rule.of(Exclusion(uuid=row["uuid"], **{name: row[name] for name in RULE_FIELDS}))
            row["is_in_force"] = row["deleted_at"] is None and rule.is_in_force(now)


class NewExclusionSerializer(serializers.Serializer[Any]):
    """The body of POST. `actions.exclusions.records` validates the fields."""

    name = serializers.CharField(max_length=NAME_LENGTH)
    owner = serializers.CharField(
        max_length=TEXT_LENGTH, required=False, allow_null=True, help_text="default: the user who sends the request"
    )
    reason = serializers.CharField(max_length=TEXT_LENGTH, required=False, allow_null=True, allow_blank=True)
    action_types = serializers.ListField(child=serializers.CharField(), required=False, allow_null=True)
    targets = TargetsField(required=False, allow_null=True)
    window = WindowField(required=False, allow_null=True)
    zone = serializers.CharField(
        required=False, allow_null=True, help_text="time zone, such as Europe/Berlin; default: UTC"
    )
    expires_at = TimeTextField(
        required=False, allow_null=True, help_text="ISO 8601; in the time zone of zone if it has no offset"
    )
    enabled = FlagField(required=False, help_text="whether the rule is applied; default: true")

    argument = "exclusion"
    since: dict[str, Version] = {}


class SavedTrialSerializer(serializers.Serializer[Any]):
    """The body of a test of a saved rule."""

    action_plan = serializers.UUIDField(help_text="UUID of the action plan")
    at = TimeTextField(
        required=False,
        allow_null=True,
        help_text="ISO 8601; in the time zone of the rule if it has no offset; default: now",
    )

    argument = "trial"
    since: dict[str, Version] = {}


@extend_schema_field(NewExclusionSerializer)
class DraftField(serializers.DictField):
    """An unparsed rule, which `NewExclusionSerializer` validates."""


class TrialSerializer(SavedTrialSerializer):
    """The body of a test of a rule that is not saved."""

    exclusion = DraftField(help_text="the rule, as in the body of POST /v1/exclusions")


class ExcludedActionSerializer(serializers.Serializer[Any]):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    action_type = serializers.CharField()
    target = serializers.CharField(allow_null=True)
    state = serializers.ChoiceField(Action.State.choices)
    why = serializers.CharField(
        help_text="targets of the rule that the action affects; empty if the rule has no targets"
    )
    links = links_field()


class TrialAnswerSerializer(serializers.Serializer[Any]):
    action_plan_uuid = serializers.UUIDField()
    at = serializers.DateTimeField()
    is_in_force = serializers.BooleanField(help_text="whether the rule is in force at that time")
    in_force_from = serializers.DateTimeField(
        allow_null=True, help_text="first time from then on at which the rule is in force; null: never"
    )
    total = serializers.IntegerField(help_text="number of actions of the plan")
    excluded = serializers.IntegerField(help_text="number of actions that the rule excludes while it is in force")
    actions = ExcludedActionSerializer(many=True)
    next = serializers.URLField(
        required=False, help_text="URL of the next page, if this page is full; it takes the same body"
    )


class ExclusionView(NamedLookup, ResourceView):
    since = EXCLUSIONS
    serializer_class = ExclusionSerializer
    model = Exclusion
    title = "Exclusion"
    policy = "exclusion"
    identifiers = ("uuid", "name")
    filters = ["name", "owner", "enabled"]
    filter_schemas = {"enabled": FLAG}
    sort_keys = {
        "uuid": "uuid",
        "name": "name",
        "owner": "owner",
        "expires_at": "expires_at",
        "enabled": "enabled",
        "created_at": "created_at",
        "updated_at": "updated_at",
    }
    bodies: dict[str, Any] = {
        "create": NewExclusionSerializer,
        "try_draft": TrialSerializer,
        "try_saved": SavedTrialSerializer,
    }
    answers = dict.fromkeys(("try_draft", "try_saved"), (200, TrialAnswerSerializer))
    permissions_required = dict.fromkeys(("try_draft", "try_saved"), "actions.view_exclusion")
    policy_actions = ResourceView.policy_actions | {"try_draft": "try", "try_saved": "try_saved"}
    arguments = dict.fromkeys(("try_draft", "try_saved"), PAGING)
    example_step = {"op": "replace", "path": "/expires_at", "value": "2999-12-31T18:00:00Z"}

    def filter_name(self, queryset: QuerySet[Exclusion], value: str) -> QuerySet[Exclusion]:
        return queryset.filter(name__iexact=value)

    def filter_owner(self, queryset: QuerySet[Exclusion], value: str) -> QuerySet[Exclusion]:
        return queryset.filter(owner__iexact=value)

    def filter_enabled(self, queryset: QuerySet[Exclusion], value: str) -> QuerySet[Exclusion]:
        if value.lower() not in SWITCH:
            raise Invalid(f"enabled: must be true or false, not {value}.")
        return queryset.filter(enabled=SWITCH[value.lower()])

    def create(self, request: Request) -> Response:
        """Create a rule. It skips matching actions that have not begun."""
        attributes = read_body(request, NewExclusionSerializer, ExclusionSerializer._declared_fields)
        return self.created(create_exclusion(attributes, request.user.get_username()))

    def partial_update(self, request: Request, identifier: str) -> Response:
        """Change a rule. The change applies to all actions that have not begun."""
        patch = read_patch(request.data, internal=("/is_in_force",), mandatory=("/name", "/enabled"))
        exclusion = self.get_object(request, identifier)
        before = attributes_of(exclusion)
        after = apply_patch(before, patch)
        if changes := {name: after.get(name) for name in WRITABLE if after.get(name) != before[name]}:
            change_exclusion(exclusion, changes, request.user.get_username())
        return Response(self.show(exclusion))

    def destroy(self, request: Request, identifier: str) -> Response:
        """Delete a rule. Actions that it skipped can be restored until their plan begins."""
        delete_exclusion(self.get_object(request, identifier))
        return Response(status=204)

    def try_draft(self, request: Request) -> Response:
        """List the actions of a plan that a rule would exclude, with their targets. The rule is not saved.

        The rule is tested on all actions of the plan, in any state.
        """
        body = read_body(request, TrialSerializer)
        attributes = read_attributes(body["exclusion"], NewExclusionSerializer)
        return self.answer_trial(request, draft_exclusion(attributes, request.user.get_username()), body)

    def try_saved(self, request: Request, identifier: str) -> Response:
        """List the actions of a plan that this rule excludes, with their targets."""
        exclusion = self.get_object(request, identifier)
        return self.answer_trial(request, exclusion, read_body(request, SavedTrialSerializer))

    def answer_trial(self, request: Request, exclusion: Exclusion, body: dict[str, Any]) -> Response:
        for permission in ("plans.view_actionplan", "actions.view_action"):
            self.require(request, permission)
        refuse_unknown_arguments(request.query_params, {"limit", "marker"})
        limit = read_limit(request.query_params.get("limit"))
        trial = try_rule(exclusion, ActionPlan.objects.find(body["action_plan"]), body.get("at"))
        listed = excluded_after(trial, request.query_params.get("marker"))
        rows = [excluded_action_row(action, match) for action, match in listed[:limit]]
        answer = {"action_plan_uuid": body["action_plan"], **trial_summary(trial), "actions": rows}
        if len(listed) > limit:
            answer["next"] = f"{self.host()}{request.path}?limit={limit}&marker={rows[-1]['uuid']}"
        ActionSerializer.add_links(rows, self.host())
        return Response(answer)


def trial_summary(trial: Trial) -> dict[str, Any]:
    return {
        "at": trial.moment,
        "is_in_force": trial.is_in_force,
        "in_force_from": trial.in_force_from,
        "total": trial.total,
        "excluded": len(trial.found),
    }


def excluded_after(trial: Trial, marker: str | None) -> list[tuple[Action, Match]]:
    """Return the excluded actions after the marker.

    Raises:
        NotFound: the marker is not an excluded action.
    """
    if marker is None:
        return list(trial.found)
    uuid = read_uuid(marker, "marker")
    for place, (action, _) in enumerate(trial.found, 1):
        if action.uuid == uuid:
            return list(trial.found[place:])
    raise NotFound(f"Action {marker} could not be found among those that are excluded")


def excluded_action_row(action: Action, match: Match) -> Row:
    return {
        "uuid": action.uuid,
        "name": action.name,
        "action_type": action.action_type,
        "target": action.target,
        "state": action.state,
        "why": match.target_names,
    }
