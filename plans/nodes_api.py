"""``/v1/nodes``: read them, and have them created, checked and deleted."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.api import NodeReading
from cluster.models.profiles import NAME_LENGTH
from cluster.serializers import NodeSerializer
from plans.node_operations import ROLE_LENGTH, Operation, check_node, create_node, delete_node
from watcher_site.api.bodies import read_body
from watcher_site.api.paging import refuse_unknown
from watcher_site.api.versions import Version
from watcher_site.calling import caller_of
from watcher_site.refusals import Invalid

PLAN_ONLY = "whether the plan is only made, to look at it and to start it later"
WORDS = {"true": True, "false": False}


class OperationSerializer(serializers.Serializer[Any]):
    """What came of asking for an operation."""

    action = serializers.UUIDField(help_text="the action that it became")
    action_plan = serializers.UUIDField(help_text="the plan that holds the action")
    node = serializers.UUIDField()


class OptionsSerializer(serializers.Serializer[Any]):
    """The body of an operation; it may be left out."""

    plan_only = serializers.BooleanField(required=False, default=False, help_text=PLAN_ONLY)

    argument = "operation"
    since: dict[str, Version] = {}


class NewNodeSerializer(OptionsSerializer):
    """The body of POST."""

    name = serializers.CharField(max_length=NAME_LENGTH)
    profile = serializers.CharField(max_length=NAME_LENGTH, help_text="its UUID or its name")
    role = serializers.CharField(max_length=ROLE_LENGTH, required=False, allow_blank=True)
    metadata = serializers.DictField(required=False, allow_null=True)

    argument = "node"


class NodeView(NodeReading):
    bodies = {"create": NewNodeSerializer, "check": OptionsSerializer}
    arguments = {"destroy": [OpenApiParameter("plan_only", bool, description=PLAN_ONLY)]}
    answers = dict.fromkeys(("create", "destroy", "check"), (202, OperationSerializer))
    permissions_required = {"check": "cluster.check_node"}

    def create(self, request: Request) -> Response:
        """Make a node from a profile, and have its server created by an action."""
        attributes = read_body(request, NewNodeSerializer, NodeSerializer._declared_fields)
        self.require_start(request, attributes["plan_only"])
        return self.accepted(create_node(**attributes, caller=caller_of(request)))

    def destroy(self, request: Request, identifier: str) -> Response:
        """Have a node and its server deleted by an action."""
        node = self.get_object(request, identifier)
        refuse_unknown(request.query_params, {"plan_only"})
        plan_only = read_plan_only(request.query_params.get("plan_only", "false"))
        self.require_start(request, plan_only)
        return self.accepted(delete_node(node, caller_of(request), plan_only))

    def check(self, request: Request, identifier: str) -> Response:
        """Have an action look whether the server of a node runs: it is ACTIVE or ERROR then."""
        node = self.get_object(request, identifier)
        plan_only = read_body(request, OptionsSerializer)["plan_only"]
        self.require_start(request, plan_only)
        return self.accepted(check_node(node, caller_of(request), plan_only))

    def require_start(self, request: Request, plan_only: bool) -> None:
        """Whoever has it done at once starts a plan."""
        if not plan_only:
            self.require(request, "plans.start_actionplan")

    def accepted(self, operation: Operation) -> Response:
        answer = {"action": operation.action, "action_plan": operation.action_plan, "node": operation.node}
        return Response(answer, 202, headers={"Location": f"{self.host()}/v1/actions/{operation.action}"})


def read_plan_only(value: str) -> bool:
    try:
        return WORDS[value.lower()]
    except KeyError:
        raise Invalid(
            f"Invalid input for field/attribute plan_only. Value: '{value}'. It must be true or false."
        ) from None
