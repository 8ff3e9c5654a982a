"""``/v1/servers``: read them, have them created, rebuilt and deleted, and their state reset."""

from collections.abc import Callable
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.models import Server
from cluster.operations.servers import REQUEST, checked_request
from plans.api.marks import Marking
from plans.api.servers.reading import ServerReading, ServerSerializer
from plans.operations.servers import RESETTABLE, create_server, delete_server, rebuild_server, reset_server
from watcher_site.api.bodies import DescribedField, read_body
from watcher_site.api.paging import refuse_unknown_arguments
from watcher_site.api.permissions import denied
from watcher_site.api.versions import Version
from watcher_site.database.text import require_storable
from watcher_site.refusals import Invalid
from watcher_site.request_context import CallingContext, caller_of
from watcher_site.validation.json_schema import Draft202012Validator, find_violation

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


class NewServerSerializer(serializers.Serializer[Any]):
    """The body of POST, as Nova has it."""

    server = DescribedField(REQUEST)

    argument = "server"
    since: dict[str, Version] = {}


class ServerActionSerializer(serializers.Serializer[Any]):
    """The body of an action: one of these."""

    rebuild = DescribedField(
        SCHEMAS[REBUILD], required=False, help_text="imageRef: the id of an image; the server's own if null"
    )
    vars()[RESET] = DescribedField(SCHEMAS[RESET], required=False, help_text="state: active or error")

    argument = "action"
    schema_rules = {"minProperties": 1, "maxProperties": 1}
    since: dict[str, Version] = {}


class ServerAnswerSerializer(serializers.Serializer[Any]):
    server = ServerSerializer()


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
        """Ask for a server: a host is found for it by an action."""
        attributes = checked_request(read_body(request, NewServerSerializer)["server"])
        project = self.choose_project(attributes.get("project_id"))
        server = create_server(attributes, project, self.caller(request, project))
        location = f"{self.host()}/v1/servers/{server.uuid}"
        return Response(self.show(server), 202, headers={"Location": location})

    def caller(self, request: Request, project: str) -> CallingContext:
        """Return on whose behalf something is done to a server: in its project, where they are a member of that."""
        return caller_of(request, project if project in self.projects else None)

    def destroy(self, request: Request, identifier: str) -> Response:
        """Have a server deleted: one that waits for room is gone at once, others when an action has deleted them."""
        server = self.get_object(request, identifier)
        refuse_unknown_arguments(request.query_params, set())
        delete_server(server, self.caller(request, server.project_id))
        return Response(status=204)

    def act(self, request: Request, identifier: str) -> Response:
        """Rebuild a server, or reset its state: the body says which, as Nova has it."""
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
    """Return the one action that a body names, and its arguments.

    Raises:
        Invalid: none or several, an unknown one, or arguments that break a rule.
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
