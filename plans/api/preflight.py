"""``/v1/action_plans/{uuid}/preflight``: the actions that would be skipped or fail."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from actions.api.serializers import ActionSerializer
from actions.event_details import sees_details
from actions.models import Action
from plans.models.preflight_results import OUTCOMES, PreflightResult
from plans.preflight import Prospect
from plans.preflight_storage import find_result, read_prospects, store_result
from watcher_site.api.paging import read_limit, read_uuid, refuse_unknown_arguments
from watcher_site.api.serializers import Row, links_field
from watcher_site.refusals import NotFound

LISTED = [str(outcome) for outcome in OUTCOMES if outcome != Action.State.SUCCEEDED]
PREFLIGHT_PARAMETERS = [
    OpenApiParameter("limit", {"type": "integer", "minimum": 1}, description="maximum number of actions"),
    OpenApiParameter("marker", OpenApiTypes.UUID, description="last action of the previous page"),
]


class ProspectSerializer(serializers.Serializer[Any]):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    action_type = serializers.CharField()
    target = serializers.CharField(allow_null=True)
    outcome = serializers.ChoiceField(LISTED, help_text="expected final state, if it can be predicted")
    status_message = serializers.CharField(
        allow_null=True, help_text="expected status message, or the reason why the outcome cannot be predicted"
    )
    links = links_field()


class PreflightSerializer(serializers.Serializer[Any]):
    action_plan_uuid = serializers.UUIDField()
    computed_at = serializers.DateTimeField(
        help_text="time of the state of the plan and the cloud that the result is based on"
    )
    cloud_is_mirrored = serializers.BooleanField(
        help_text="whether the result was computed from a copy of a real cloud"
    )
    cloud_read_at = serializers.DateTimeField(
        allow_null=True, help_text="time of the last complete synchronization of the copy"
    )
    counts = serializers.DictField(
        child=serializers.IntegerField(min_value=0), help_text="number of unfinished actions by expected outcome"
    )
    ended = serializers.DictField(
        child=serializers.IntegerField(min_value=0), help_text="number of finished actions by state"
    )
    actions = ProspectSerializer(many=True, help_text="actions that would not succeed, in the order of the plan")
    next = serializers.URLField(required=False, help_text="URL of the next page, if this page is full")


class Preflighting:
    """The method of the view of action plans for preflights."""

    def preflight(self: Any, request: Request, identifier: str) -> Response:
        """Predict which actions would be skipped or fail if the plan began now. Executes no action. From 1.12.

        The unfinished actions are simulated in order on a model of the cloud in memory. The result is stored for up to
        five minutes, unless the plan or the cloud changes.
        """
        self.require_version(request)
        plan = self.get_object(request, identifier)
        self.require(request, "actions.view_action")
        refuse_unknown_arguments(request.query_params, {"limit", "marker"})
        limit = read_limit(request.query_params.get("limit"))
        found = find_result(plan, details=sees_details(request.user))
        store_result(found)
        listed = foreseen_after(found, request.query_params.get("marker"))
        rows = [foreseen_action_row(prospect) for prospect in read_prospects(listed[:limit])]
        answer = {"action_plan_uuid": plan.uuid, **preflight_summary(found), "actions": rows}
        if len(listed) > limit:
            path = f"{self.host()}/v1/action_plans/{plan.uuid}/preflight"
            answer["next"] = f"{path}?limit={limit}&marker={rows[-1]['uuid']}"
        ActionSerializer.add_links(rows, self.host())
        return Response(answer)


def preflight_summary(found: PreflightResult) -> dict[str, Any]:
    return {
        "computed_at": found.computed_at,
        "cloud_is_mirrored": found.is_mirrored,
        "cloud_read_at": found.read_at,
        "counts": found.counts,
        "ended": dict(found.ended),
    }


def foreseen_after(found: PreflightResult, marker: str | None) -> list[Any]:
    """Return the rows of actions that would not succeed, after the marker in the order of the plan.

    Raises:
        NotFound: the marker is not an unfinished action of the plan.
    """
    listed = found.select()
    if marker is None:
        return listed
    uuid = read_uuid(marker, "marker")
    marked = Action.objects.filter(action_plan=found.action_plan_id, uuid=uuid).values_list("pk", flat=True).first()
    places = {key: place for place, (key, _outcome, _message) in enumerate(found.prospects)}
    if marked not in places:
        raise NotFound(f"Action {marker} could not be found among those that are foreseen")
    return [one for one in listed if places[one[0]] > places[marked]]


def foreseen_action_row(prospect: Prospect) -> Row:
    action = prospect.action
    return {
        "uuid": action.uuid,
        "name": action.name,
        "action_type": action.action_type,
        "target": action.target,
        "outcome": prospect.outcome,
        "status_message": prospect.foresight.message,
    }
