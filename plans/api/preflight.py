"""``/v1/action_plans/{uuid}/preflight``: what would be skipped or fail, for the API."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from actions.api.serializers import ActionSerializer
from actions.event_details import sees_details
from actions.models import Action
from plans.preflight import OUTCOMES, Preflight, Prospect, preflight
from watcher_site.api.paging import read_limit, read_uuid, refuse_unknown_arguments
from watcher_site.api.serializers import Row, links_field
from watcher_site.refusals import NotFound

LISTED = [str(outcome) for outcome in OUTCOMES if outcome != Action.State.SUCCEEDED]
PREFLIGHT_PARAMETERS = [
    OpenApiParameter("limit", {"type": "integer", "minimum": 1}, description="how many actions at most"),
    OpenApiParameter("marker", OpenApiTypes.UUID, description="the last action of the page before"),
]


class ProspectSerializer(serializers.Serializer[Any]):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    action_type = serializers.CharField()
    target = serializers.CharField(allow_null=True)
    outcome = serializers.ChoiceField(LISTED, help_text="the state in which it would end, if that can be foreseen")
    status_message = serializers.CharField(
        allow_null=True, help_text="what it would say then, or why it cannot be foreseen"
    )
    links = links_field()


class PreflightSerializer(serializers.Serializer[Any]):
    action_plan_uuid = serializers.UUIDField()
    cloud_is_mirrored = serializers.BooleanField(help_text="whether the cloud is known from a copy of it")
    cloud_read_at = serializers.DateTimeField(allow_null=True, help_text="when that copy was last made whole")
    counts = serializers.DictField(
        child=serializers.IntegerField(min_value=0), help_text="how many actions would end so"
    )
    ended = serializers.DictField(
        child=serializers.IntegerField(min_value=0), help_text="how many have ended already, by their states"
    )
    actions = ProspectSerializer(many=True, help_text="those that would not just succeed, in the order of the plan")
    next = serializers.URLField(required=False, help_text="the next page, where this one is full")


class Preflighting:
    """The preflight, for the view of action plans."""

    def preflight(self: Any, request: Request, identifier: str) -> Response:
        """Tell what would be skipped or fail if the plan began now, and execute nothing. From 1.12.

        The actions that have not ended are tried in order on a model of the cloud in memory, each on what those before
        it would leave behind.
        """
        self.require_version(request)
        plan = self.get_object(request, identifier)
        self.require(request, "actions.view_action")
        refuse_unknown_arguments(request.query_params, {"limit", "marker"})
        limit = read_limit(request.query_params.get("limit"))
        found = preflight(plan, details=sees_details(request.user))
        listed = foreseen_after(found, request.query_params.get("marker"))
        rows = [foreseen_action_row(prospect) for prospect in listed[:limit]]
        answer = {"action_plan_uuid": plan.uuid, **preflight_summary(found), "actions": rows}
        if len(listed) > limit:
            path = f"{self.host()}/v1/action_plans/{plan.uuid}/preflight"
            answer["next"] = f"{path}?limit={limit}&marker={rows[-1]['uuid']}"
        ActionSerializer.add_links(rows, self.host())
        return Response(answer)


def preflight_summary(found: Preflight) -> dict[str, Any]:
    return {
        "cloud_is_mirrored": found.is_mirrored,
        "cloud_read_at": found.read_at,
        "counts": found.counts,
        "ended": dict(found.ended),
    }


def foreseen_after(found: Preflight, marker: str | None) -> list[Prospect]:
    """Return those that would not just succeed, and come after the marker in the order of the plan.

    Raises:
        NotFound: it is no action of the plan, or has ended meanwhile.
    """
    if marker is None:
        return found.remarkable
    uuid = read_uuid(marker, "marker")
    for place, prospect in enumerate(found.prospects, 1):
        if prospect.action.uuid == uuid:
            return [other for other in found.prospects[place:] if other.is_remarkable]
    raise NotFound(f"Action {marker} could not be found among those that are foreseen")


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
