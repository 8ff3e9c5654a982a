"""``/v1/servers/{id}/os-instance-actions``: the operations on a server, with their events.

See docs/compatibility.md, "Instance actions and events".
"""

from typing import Any
from urllib.parse import urlencode

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from actions.event_details import DETAILS, sees_details, sees_host
from actions.models import ActionEvent
from actions.server_history import (
    ARGUMENTS,
    events_of_operation,
    find_one,
    next_query,
    operation_values,
    read_list,
    read_query,
    visible_events,
)
from cluster.models import Server
from plans.api.servers import ServerReading
from watcher_site.api.paging import refuse_unknown_arguments
from watcher_site.api.serializers import LinkSerializer
from watcher_site.api.versions import Version, used_by

TIME = "UTC, such as 2026-11-20T22:55:41.000000"


class EventSerializer(serializers.Serializer[Any]):
    event = serializers.CharField(help_text="pre_condition, execute, post_condition, recover, abort, revert …")
    start_time = serializers.CharField(help_text=TIME)
    finish_time = serializers.CharField(allow_null=True, help_text="null until the event ends")
    result = serializers.ChoiceField(
        ActionEvent.Result.choices, allow_null=True, help_text="null until the event ends"
    )
    hostId = serializers.CharField(  # noqa: N815 (Nova's)
        allow_blank=True, help_text="identifies the host within a project"
    )
    host = serializers.CharField(required=False, allow_null=True, help_text="only for users who may see all actions")
    details = serializers.CharField(
        required=False, allow_null=True, help_text="the error; only for users with permission to see details"
    )

    since = {"details": DETAILS}


class InstanceActionSerializer(serializers.Serializer[Any]):
    action = serializers.CharField(help_text="create, live-migration, migrate, resize, stop, rebuild, delete …")
    instance_uuid = serializers.UUIDField()
    request_id = serializers.CharField()
    user_id = serializers.CharField(allow_null=True)
    project_id = serializers.CharField(allow_null=True)
    start_time = serializers.CharField(help_text=TIME)
    updated_at = serializers.CharField(help_text=TIME)
    message = serializers.CharField(allow_null=True, help_text="Error if one of the events failed")

    since: dict[str, Version] = {}


class InstanceActionInFullSerializer(InstanceActionSerializer):
    events = EventSerializer(many=True)


class InstanceActionsSerializer(serializers.Serializer[Any]):
    instanceActions = InstanceActionSerializer(many=True)  # noqa: N815 (Nova's)
    links = LinkSerializer(many=True, required=False, help_text="link to the next page, if this page is full")

    since: dict[str, Version] = {}


class OneInstanceActionSerializer(serializers.Serializer[Any]):
    instanceAction = InstanceActionInFullSerializer()  # noqa: N815 (Nova's)

    since: dict[str, Version] = {}


def parameters() -> list[OpenApiParameter]:
    return [
        OpenApiParameter("limit", {"type": "integer", "minimum": 0}, description="maximum number of entries"),
        OpenApiParameter("marker", str, description="request id of the last operation of the previous page"),
        OpenApiParameter(
            "changes-since", OpenApiTypes.DATETIME, description="only operations that changed at this time or later"
        ),
        OpenApiParameter(
            "changes-before", OpenApiTypes.DATETIME, description="only operations that changed at this time or earlier"
        ),
    ]


class InstanceActionView(ServerReading):
    """The operations on a server, also after its deletion, for users who may see the server."""

    policy = "server_action"
    named_in_paths = "server"
    policy_actions = ServerReading.policy_actions | {"of_server": "get_all"}
    answers = {"of_server": (200, InstanceActionsSerializer), "retrieve": (200, OneInstanceActionSerializer)}
    arguments = {"of_server": parameters()}

    def shows_deleted(self) -> bool:
        return True

    def of_server(self, request: Request, identifier: str) -> Response:
        """List the operations of users and plans on a server, newest first."""
        server = self.find_server(request, identifier)
        refuse_unknown_arguments(request.query_params, ARGUMENTS)
        listing = read_query(request.query_params)
        page = read_list(server.uuid, listing)
        answer: dict[str, Any] = {"instanceActions": [operation_values(one) for one in page]}
        if following := next_query(listing, request.query_params, page):
            path = f"{self.host()}/v1/servers/{server.uuid}/os-instance-actions"
            answer["links"] = [{"rel": "next", "href": f"{path}?{urlencode(following)}"}]
        return Response(answer)

    def retrieve(self, request: Request, identifier: str, request_id: str = "") -> Response:
        """Show an operation on a server with its events, newest first."""
        server = self.find_server(request, identifier)
        refuse_unknown_arguments(request.query_params, ())
        found = find_one(server.uuid, request_id)
        events = visible_events(
            events_of_operation(found),
            project=server.project_id,
            host=sees_host(request.user),
            details=used_by(request) >= DETAILS and sees_details(request.user, server.project_id),
        )
        return Response({"instanceAction": operation_values(found) | {"events": events}})

    def find_server(self, request: Request, identifier: str) -> Server:
        found: Server = self.get_object(request, identifier)
        return found

    def find_present(self, identifier: str) -> Any:
        return self.lookup(identifier).first()
