"""``/v1/nodes``: read them, and have them created, changed, checked, recovered and deleted."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.models.clusters import NAME_LENGTH
from plans.api.clusters.bodies import RECOVERIES
from plans.api.clusters.node_reading import NodeReading, NodeSerializer
from plans.api.marks import Marking
from plans.api.operations import (
    PLAN_ONLY_PARAMETER,
    Operating,
    OperationSerializer,
    OptionsSerializer,
    changes_of,
    columns_of,
)
from plans.operations.nodes import (
    CHANGEABLE,
    ROLE_LENGTH,
    check_node,
    create_node,
    delete_node,
    recover_node,
    update_node,
)
from watcher_site.api.bodies import FlagField, read_body, read_patch
from watcher_site.api.paging import read_flag, refuse_unknown_arguments


class NodeOperationSerializer(OperationSerializer):
    node = serializers.UUIDField()


class NewNodeSerializer(OptionsSerializer):
    """The body of POST."""

    name = serializers.CharField(max_length=NAME_LENGTH)
    profile = serializers.CharField(
        max_length=NAME_LENGTH, required=False, help_text="its UUID or its name; left out, that of the cluster"
    )
    cluster = serializers.CharField(
        max_length=NAME_LENGTH, required=False, help_text="the UUID or the name of the one that it joins"
    )
    role = serializers.CharField(max_length=ROLE_LENGTH, required=False, allow_blank=True)
    metadata = serializers.DictField(required=False, allow_null=True)

    argument = "node"


class NodeRecoverySerializer(OptionsSerializer):
    operation = serializers.ChoiceField(RECOVERIES, required=False)
    check = FlagField(required=False, help_text="whether its server is looked at first")


OPERATIONS = {"create": NewNodeSerializer, "check": OptionsSerializer, "recover": NodeRecoverySerializer}


class NodeView(Marking, Operating, NodeReading):
    operates_on = "node"
    bodies = {**OPERATIONS, **Marking.mark_bodies}
    arguments = {"partial_update": [PLAN_ONLY_PARAMETER], "destroy": [PLAN_ONLY_PARAMETER]}
    answers = {
        **dict.fromkeys((*OPERATIONS, "partial_update", "destroy"), (202, NodeOperationSerializer)),
        **Marking.mark_answers,
    }
    actions_since = Marking.mark_versions
    permissions_required = {
        "check": "cluster.check_node",
        "recover": "cluster.recover_node",
        "mark": "cluster.mark_node",
    }
    example_step = {"op": "replace", "path": "/tainted", "value": True}

    def create(self, request: Request) -> Response:
        """Make a node from a profile, and have its server created by an action."""
        attributes = read_body(request, NewNodeSerializer, NodeSerializer._declared_fields)
        options = self.request_options(request, attributes.pop("plan_only"))
        return self.accepted(create_node(**attributes, options=options))

    def destroy(self, request: Request, identifier: str) -> Response:
        """Have a node and its server deleted by an action."""
        node = self.get_object(request, identifier)
        refuse_unknown_arguments(request.query_params, {"plan_only"})
        return self.accepted(delete_node(node, self.request_options(request, read_flag(request, "plan_only"))))

    def partial_update(self, request: Request, identifier: str) -> Response:
        """Have the name, the role, the metadata, the profile, or whether it is tainted, changed by an action."""
        own = [f"/{name}" for name in NodeSerializer._declared_fields if name not in CHANGEABLE]
        patch = read_patch(request.data, internal=own, mandatory=("/name", "/profile", "/tainted", "/role"))
        node = self.get_object(request, identifier)
        refuse_unknown_arguments(request.query_params, {"plan_only"})
        changes = changes_of({**columns_of(node, CHANGEABLE), "profile": str(node.profile.uuid)}, patch)
        return self.accepted(
            update_node(node, changes, self.request_options(request, read_flag(request, "plan_only")))
        )

    def check(self, request: Request, identifier: str) -> Response:
        """Have an action look whether the server of a node runs: it is ACTIVE or ERROR then."""
        node = self.get_object(request, identifier)
        plan_only = read_body(request, OptionsSerializer)["plan_only"]
        return self.accepted(check_node(node, self.request_options(request, plan_only)))

    def recover(self, request: Request, identifier: str) -> Response:
        """Have a node get a server that runs by an action, where its own does not."""
        node = self.get_object(request, identifier)
        inputs = read_body(request, NodeRecoverySerializer)
        options = self.request_options(request, inputs.pop("plan_only"))
        return self.accepted(recover_node(node, **inputs, options=options))
