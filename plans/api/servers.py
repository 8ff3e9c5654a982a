"""``/v1/servers``: read, create, rebuild, reset and delete servers."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast, JSONObject
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cluster import server_statuses
from cluster.models import Server
from cluster.operations.marks import mark_reasons_of
from cluster.operations.servers import REQUEST, checked_request
from plans.api.marks import Marking
from plans.operations.servers import RESETTABLE, create_server, delete_server, rebuild_server, reset_server
from watcher_site.api import versions
from watcher_site.api.bodies import DescribedField, read_body
from watcher_site.api.paging import refuse_unknown_arguments
from watcher_site.api.permissions import OwnedByProjects, denied
from watcher_site.api.serializers import ResourceSerializer, Row, links_field
from watcher_site.api.versions import Version
from watcher_site.api.views import ResourceView
from watcher_site.database.text import require_storable
from watcher_site.refusals import Invalid
from watcher_site.request_context import CallingContext, caller_of
from watcher_site.validation import Draft202012Validator, find_violation

# The versions that added servers, the status PENDING, and marks on their health.
SERVERS, PENDING, MARKS = (1, 8), (1, 10), (1, 11)
VIEW_ALL = "cluster.view_server"
HOST = "OS-EXT-SRV-ATTR:host"
FLAVOR = JSONObject(original_name="flavor", vcpus="vcpus", ram="memory", disk="disk")
REBUILD, RESET = "rebuild", "os-resetState"
HISTORY_EVENTS = {REBUILD: "server.rebuild", RESET: "server.reset_state"}
RESET_RIGHT = "cluster.reset_server"
SCHEMAS: dict[str, dict[str, Any]] = {
    REBUILD: {
        "type": "object",
        "properties": {
            "imageRef": {"type": ["string", "null"], "minLength": 1, "maxLength": 255},
            "description": {"type": ["string", "null"], "maxLength": 255},
        },
        "additionalProperties": False,
    },
    RESET: {
        "type": "object",
        "properties": {"state": {"enum": list(RESETTABLE)}},
        "required": ["state"],
        "additionalProperties": False,
    },
}
ACTIONS = {verb: Draft202012Validator(schema) for verb, schema in SCHEMAS.items()}


class ServerSerializer(ResourceSerializer):
    """A server with the field names of Nova, some of which are not valid names in Python."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    status = serializers.ChoiceField(server_statuses.list_statuses(knows_pending=True))
    links = links_field()
    tenant_id = serializers.CharField(help_text="project of the server")
    user_id = serializers.CharField(help_text="name of the user who requested the server")
    flavor = serializers.DictField(help_text="original_name, vcpus, ram in MB and disk in GB")
    image = serializers.CharField(help_text="id of the image of the server")
    metadata = serializers.DictField()
    fault = serializers.DictField(
        allow_null=True, help_text="code, message and created, if the status is ERROR or DELETED"
    )
    unhealthy_reason = serializers.CharField(
        allow_null=True,
        help_text="reason for the mark as unhealthy of the server, its resource or its node; null: not marked",
    )
    created = serializers.DateTimeField()
    updated = serializers.DateTimeField(allow_null=True)
    vars()["OS-EXT-STS:vm_state"] = serializers.ChoiceField(Server.State.choices)
    vars()["OS-EXT-STS:task_state"] = serializers.CharField(allow_null=True)
    vars()["OS-EXT-AZ:availability_zone"] = serializers.CharField(allow_null=True)
    vars()["OS-SRV-USG:launched_at"] = serializers.DateTimeField(allow_null=True)
    vars()[HOST] = serializers.CharField(
        required=False, allow_null=True, help_text="only for users who may see all servers"
    )

    class Meta:
        collection = "servers"
        short = ("id", "name", "links")
        since = {"unhealthy_reason": MARKS}
        columns = {
            "id": "uuid",
            "status": server_statuses.status_expression(knows_pending=True),
            "tenant_id": "project_id",
            "flavor": Cast(FLAVOR, TextField()),
            "fault": server_statuses.fault_expression(knows_pending=True),
            "created": "created_at",
            "updated": "updated_at",
            "OS-EXT-STS:vm_state": "state",
            "OS-EXT-STS:task_state": "task_state",
            "OS-EXT-AZ:availability_zone": "node__zone",
            "OS-SRV-USG:launched_at": "launched_at",
            HOST: "node__hostname",
        }
        formerly = {
            "status": (PENDING, server_statuses.status_expression(knows_pending=False)),
            "OS-EXT-STS:vm_state": (PENDING, server_statuses.state_without_pending()),
            "fault": (PENDING, server_statuses.fault_expression(knows_pending=False)),
        }
        json = ("flavor", "metadata", "fault")
        computed = ("links",)

    @classmethod
    def finish(
        cls, values: Iterable[Sequence[Any]], version: versions.Version, detailed: bool, host: str
    ) -> list[Row]:
        """Add marks, in two more queries: for a server of a stack or a cluster, the mark is on another row."""
        rows = super().finish(values, version, detailed, host)
        if rows and "unhealthy_reason" in rows[0]:
            reasons = mark_reasons_of({str(row["id"]): row["unhealthy_reason"] for row in rows})
            for row in rows:
                row["unhealthy_reason"] = reasons[str(row["id"])]
        return rows


class NewServerSerializer(serializers.Serializer[Any]):
    """The body of POST, in the format of Nova."""

    server = DescribedField(REQUEST)

    argument = "server"
    since: dict[str, Version] = {}


class ServerActionSerializer(serializers.Serializer[Any]):
    """The body of an action: an object with one of these fields."""

    rebuild = DescribedField(
        SCHEMAS[REBUILD], required=False, help_text="imageRef: id of an image; null: the current image of the server"
    )
    vars()[RESET] = DescribedField(SCHEMAS[RESET], required=False, help_text="state: active or error")

    argument = "action"
    schema_rules = {"minProperties": 1, "maxProperties": 1}
    since: dict[str, Version] = {}


class ServerAnswerSerializer(serializers.Serializer[Any]):
    server = ServerSerializer()


class ServerReading(OwnedByProjects, ResourceView):
    """The base of views of servers: lists and details."""

    since = SERVERS
    serializer_class = ServerSerializer
    model = Server
    title = "Server"
    policy = "server"
    shown_project = "tenant_id"
    project_argument = "server: project_id"
    identifiers = ("uuid",)
    filters = ["name", "status", "vm_state", "project_id", "host", "flavor"]
    repeatable = frozenset({"status", "vm_state"})
    sort_keys = {"id": "uuid", "name": "name", "created_at": "created_at", "updated_at": "updated_at"}

    @property
    def knows_pending(self) -> bool:
        return versions.used_by(self.request) >= PENDING

    def read(self, queryset: QuerySet[Any], detailed: bool) -> list[Row]:
        rows = super().read(queryset, detailed)
        if not self.request.user.has_perm(VIEW_ALL):
            for row in rows:
                row.pop(HOST, None)
        return rows

    def filter_name(self, queryset: QuerySet[Server], value: str) -> QuerySet[Server]:
        return queryset.filter(name=value)

    def filter_status(self, queryset: QuerySet[Server], value: list[str]) -> QuerySet[Server]:
        wanted = [status.upper() for status in value]
        refuse_unknown_fields("status", wanted, server_statuses.list_statuses(knows_pending=self.knows_pending))
        return queryset.filter(server_statuses.with_statuses(wanted, knows_pending=self.knows_pending))

    def filter_vm_state(self, queryset: QuerySet[Server], value: list[str]) -> QuerySet[Server]:
        known = set(Server.State.values) - (set() if self.knows_pending else {Server.State.PENDING})
        wanted = {state.lower() for state in value}
        refuse_unknown_fields("vm_state", sorted(wanted), known)
        if Server.State.ERROR in wanted and not self.knows_pending:
            wanted.add(Server.State.PENDING)
        return queryset.filter(state__in=wanted)

    def filter_project_id(self, queryset: QuerySet[Server], value: str) -> QuerySet[Server]:
        return queryset.filter(project_id=value)

    def filter_host(self, queryset: QuerySet[Server], value: str) -> QuerySet[Server]:
        """Filter by host. Selects no servers for users who may not see all servers, and therefore no hosts."""
        is_allowed = self.request.user.has_perm(VIEW_ALL)
        return queryset.filter(Q(node__hostname=value) if is_allowed else Q(pk__in=[]))

    def filter_flavor(self, queryset: QuerySet[Server], value: str) -> QuerySet[Server]:
        return queryset.filter(flavor=value)


def refuse_unknown_fields(field: str, wanted: list[str], known: Any) -> None:
    if strays := [value for value in wanted if value not in known]:
        raise Invalid(f"Invalid input for field/attribute {field}. Value: '{strays[0]}'. There is no such {field}.")


class ServerView(Marking, ServerReading):
    bodies = {"create": NewServerSerializer, "act": ServerActionSerializer, **Marking.mark_bodies}
    answers = {"create": (202, ServerSerializer), "act": (202, ServerAnswerSerializer), **Marking.mark_answers}
    actions_since = Marking.mark_versions
    permissions_required = {"act": "cluster.change_server", "mark": "cluster.mark_server"}

    def history_event(self) -> str:
        body = self.document()
        operation = next(iter(body), "") if isinstance(body, dict) else ""
        return (
            HISTORY_EVENTS.get(operation, super().history_event()) if self.action == "act" else super().history_event()
        )

    def create(self, request: Request) -> Response:
        """Create a server. An action selects its host."""
        attributes = checked_request(read_body(request, NewServerSerializer)["server"])
        project = self.choose_project(attributes.get("project_id"))
        server = create_server(attributes, project, self.caller(request, project))
        location = f"{self.host()}/v1/servers/{server.uuid}"
        return Response(self.show(server), 202, headers={"Location": location})

    def caller(self, request: Request, project: str) -> CallingContext:
        """Return the calling context for a server, in its project if the user is a member of it."""
        return caller_of(request, project if project in self.projects else None)

    def destroy(self, request: Request, identifier: str) -> Response:
        """Delete a server by an action; a server that waits for capacity is deleted immediately."""
        server = self.get_object(request, identifier)
        refuse_unknown_arguments(request.query_params, set())
        delete_server(server, self.caller(request, server.project_id))
        return Response(status=204)

    def act(self, request: Request, identifier: str) -> Response:
        """Rebuild a server, or reset its state, with a body in the format of Nova."""
        server = self.get_object(request, identifier)
        verb, arguments = read_action(request.data)
        verbs: dict[str, Callable[..., Response]] = {REBUILD: self.rebuild, RESET: self.reset}
        return verbs[verb](request, server, arguments)

    def rebuild(self, request: Request, server: Server, arguments: dict[str, Any]) -> Response:
        rebuild_server(server, arguments.get("imageRef"), self.caller(request, server.project_id))
        return Response({"server": self.show(server)}, 202)

    def reset(self, request: Request, server: Server, arguments: dict[str, Any]) -> Response:
        if not request.user.has_perm(RESET_RIGHT):
            raise denied(self)
        reset_server(server, arguments["state"], self.caller(request, server.project_id))
        return Response(status=202)


def read_action(body: Any) -> tuple[str, dict[str, Any]]:
    """Return the action in a body, and its arguments.

    Raises:
        Invalid: there is no action, more than one, or an unknown one, or the arguments are invalid.
    """
    if not isinstance(body, dict) or len(body) != 1:
        raise Invalid(
            f"Invalid input for field/attribute action. An object with one of {', '.join(ACTIONS)} is expected."
        )
    [(verb, arguments)] = body.items()
    if verb not in ACTIONS:
        raise Invalid(f"There is no such action: {verb}. It must be one of {', '.join(ACTIONS)}.")
    require_storable(verb, arguments)
    if violation := find_violation(ACTIONS[verb], arguments):
        raise Invalid(f"{verb}: {violation}")
    return verb, arguments
