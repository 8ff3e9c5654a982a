"""``/v1/exclusions/try`` and ``/v1/exclusions/{id}/try``: which actions of a plan a rule excludes, and why."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from actions.api.serializers import ActionSerializer
from actions.exclusions.matching import Match
from actions.exclusions.records import drafted
from actions.models import Action
from actions.models.exclusions import Exclusion
from plans.api.exclusions import rules
from plans.api.exclusions.serializers import NewExclusionSerializer
from plans.models import ActionPlan
from plans.operations.exclusion_trials import Trial, try_rule
from watcher_site.api.bodies import TimeTextField, read_attributes, read_body
from watcher_site.api.paging import read_limit, read_uuid, refuse_unknown_arguments
from watcher_site.api.serializers import Row, links_field
from watcher_site.api.versions import Version
from watcher_site.refusals import NotFound

PAGING = [
    OpenApiParameter("limit", {"type": "integer", "minimum": 1}, description="how many actions at most"),
    OpenApiParameter("marker", OpenApiTypes.UUID, description="the last action of the page before"),
]


class SavedTrialSerializer(serializers.Serializer[Any]):
    """The body that tries a rule that was saved."""

    action_plan = serializers.UUIDField(help_text="the UUID of the action plan")
    at = TimeTextField(
        required=False, allow_null=True, help_text="in ISO 8601, by the clock of the rule's zone; now, if left out"
    )

    argument = "trial"
    since: dict[str, Version] = {}


@extend_schema_field(NewExclusionSerializer)
class DraftField(serializers.DictField):
    """A rule as it was sent, which its own serializer validates."""


class TrialSerializer(SavedTrialSerializer):
    """The body that tries a rule before it is saved."""

    exclusion = DraftField(help_text="as in the body of POST /v1/exclusions")


class ExcludedActionSerializer(serializers.Serializer[Any]):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    action_type = serializers.CharField()
    target = serializers.CharField(allow_null=True)
    state = serializers.ChoiceField(Action.State.choices)
    why = serializers.CharField(help_text="what the rule names that it touches; empty, where it names but types")
    links = links_field()


class TrialAnswerSerializer(serializers.Serializer[Any]):
    action_plan_uuid = serializers.UUIDField()
    at = serializers.DateTimeField()
    is_in_force = serializers.BooleanField(help_text="whether the rule is in force then")
    in_force_from = serializers.DateTimeField(allow_null=True, help_text="the first moment from then on")
    total = serializers.IntegerField(help_text="how many actions the plan has")
    excluded = serializers.IntegerField(help_text="how many of these the rule excludes in the hours of its window")
    actions = ExcludedActionSerializer(many=True)
    next = serializers.URLField(required=False, help_text="the next page, where this one is full: sent as this one")


class ExclusionView(rules.ExclusionView):
    bodies = rules.ExclusionView.bodies | {"try_draft": TrialSerializer, "try_saved": SavedTrialSerializer}
    answers = dict.fromkeys(("try_draft", "try_saved"), (200, TrialAnswerSerializer))
    permissions_required = dict.fromkeys(("try_draft", "try_saved"), "actions.view_exclusion")
    policy_actions = rules.ExclusionView.policy_actions | {"try_draft": "try", "try_saved": "try_saved"}
    arguments = dict.fromkeys(("try_draft", "try_saved"), PAGING)

    def try_draft(self, request: Request) -> Response:
        """Tell which actions of a plan a rule would exclude, and why. Nothing is saved.

        All of its actions are looked at, whatever became of them.
        """
        body = read_body(request, TrialSerializer)
        attributes = read_attributes(body["exclusion"], NewExclusionSerializer)
        return self.answer_trial(request, drafted(attributes, request.user.get_username()), body)

    def try_saved(self, request: Request, identifier: str) -> Response:
        """Tell which actions of a plan this rule excludes, and why."""
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
    """Return those that come after the marker.

    Raises:
        NotFound: it is none of those that the rule excludes.
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
        "why": match.why,
    }
