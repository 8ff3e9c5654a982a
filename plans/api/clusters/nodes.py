"""``/v1/nodes``: read, create, change, check, recover and delete nodes."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.api.profiles import CLUSTERS
from cluster.models import Node
from cluster.models.clusters import NAME_LENGTH
from cluster.operations.named_records import find_unique
from plans.api.clusters.bodies import RECOVERIES
from plans.api.clusters.ownership import OwnedFromTenants, project_body_field
from plans.api.marks import Marking
from plans.api.operations import (
    PLAN_ONLY_PARAMETER,
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
    find_cluster,
    recover_node,
    update_node,
)
from watcher_site.api.bodies import FlagField, read_body, read_patch
from watcher_site.api.paging import read_flag, refuse_unknown_arguments
from watcher_site.api.serializers import ResourceSerializer, links_field
from watcher_site.api.versions import TENANTS
from watcher_site.api.views import ResourceView
from watcher_site.refusals import Invalid


class NodeSerializer(ResourceSerializer):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    profile_uuid = serializers.UUIDField()
    profile_name = serializers.CharField()
    role = serializers.CharField(allow_blank=True)
    status = serializers.ChoiceField(Node.Status.choices)
    physical_id = serializers.UUIDField(allow_null=True, help_text="UUID of the server of the node")
    cluster_uuid = serializers.UUIDField(allow_null=True, help_text="cluster of which the node is a member")
    index = serializers.IntegerField(
        help_text="position in the order of joining the cluster; -1: the node is in no cluster"
    )
    links = links_field()
    tainted = serializers.BooleanField(help_text="whether the node is removed first when the cluster shrinks")
    data = serializers.DictField(help_text="decisions of policies about the node")  # type: ignore[assignment]
    status_reason = serializers.CharField(allow_null=True)
    unhealthy_reason = serializers.CharField(
        allow_null=True, help_text="reason for the mark as unhealthy; null: not marked"
    )
    metadata = serializers.DictField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(allow_null=True)
    project_id = serializers.CharField(help_text="project of the object; empty: no project")

    class Meta:
        collection = "nodes"
        short = (
            *("uuid", "name", "profile_uuid", "profile_name", "role", "status", "physical_id"),
            *("cluster_uuid", "index", "links", "project_id"),
        )
        since = {"project_id": TENANTS}
        columns = {
            "profile_uuid": "profile__uuid",
            "profile_name": "profile__name",
            "cluster_uuid": "cluster__uuid",
        }
        json = ("metadata", "data")
        computed = ("links",)


class NodeOperationSerializer(OperationSerializer):
    node = serializers.UUIDField()


class NewNodeSerializer(OptionsSerializer):
    """The body of POST."""

    name = serializers.CharField(max_length=NAME_LENGTH)
    profile = serializers.CharField(
        max_length=NAME_LENGTH,
        required=False,
        help_text="UUID or name of the profile; default: the profile of the cluster",
    )
    cluster = serializers.CharField(
        max_length=NAME_LENGTH, required=False, help_text="UUID or name of the cluster that the node joins"
    )
    role = serializers.CharField(max_length=ROLE_LENGTH, required=False, allow_blank=True)
    metadata = serializers.DictField(required=False, allow_null=True)
    project_id = project_body_field(
        "default: the project of the cluster, or the user's only project; empty: no project"
    )

    argument = "node"
    since = {"project_id": TENANTS}


class NodeRecoverySerializer(OptionsSerializer):
    operation = serializers.ChoiceField(RECOVERIES, required=False)
    check = FlagField(required=False, help_text="whether the server is checked first")


OPERATIONS = {"create": NewNodeSerializer, "check": OptionsSerializer, "recover": NodeRecoverySerializer}


class NodeView(Marking, OwnedFromTenants, ResourceView):
    since = CLUSTERS
    serializer_class = NodeSerializer
    model = Node
    title = "Node"
    policy = "node"
    identifiers = ("uuid", "name")
    arguments_since = {"sort": CLUSTERS, "project_id": TENANTS}
    filters = ["name", "status", "profile", "cluster", "project_id"]
    repeatable = frozenset({"status"})
    sort_keys = {
        "uuid": "uuid",
        "name": "name",
        "status": "status",
        "created_at": "created_at",
        "updated_at": "updated_at",
    }
    filter_schemas = {"status": {"enum": Node.Status.values}}
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

    def lookup(self, identifier: str) -> QuerySet[Any]:
        return find_unique(self.get_queryset(), identifier)

    def filter_name(self, queryset: QuerySet[Node], value: str) -> QuerySet[Node]:
        return queryset.filter(name__iexact=value)

    def filter_status(self, queryset: QuerySet[Node], value: list[str]) -> QuerySet[Node]:
        if unknown := [status for status in value if status not in Node.Status.values]:
            raise Invalid(f"Invalid input for field/attribute status. Value: '{unknown[0]}'. There is no such status.")
        return queryset.filter(status__in=value)

    def filter_profile(self, queryset: Any, value: str) -> QuerySet[Node]:
        found: QuerySet[Node] = queryset.of_profile(value)
        return found

    def filter_cluster(self, queryset: Any, value: str) -> QuerySet[Node]:
        found: QuerySet[Node] = queryset.of_cluster(value)
        return found

    def create(self, request: Request) -> Response:
        """Create a node from a profile. An action creates its server."""
        attributes = read_body(request, NewNodeSerializer, NodeSerializer._declared_fields)
        plan_only, wanted = attributes.pop("plan_only"), attributes.pop("project_id", None)
        is_of_cluster = wanted is None and "cluster" in attributes and self.may("add")
        project = None if is_of_cluster else self.choose_project(wanted)
        cluster = find_cluster(attributes["cluster"], project) if "cluster" in attributes else None
        options = self.project_request_options(request, plan_only, project or "", creates=True, record=cluster)
        return self.accepted(create_node(**attributes, project_id=project, options=options))

    def destroy(self, request: Request, identifier: str) -> Response:
        """Delete a node and its server by an action."""
        node = self.get_object(request, identifier)
        refuse_unknown_arguments(request.query_params, {"plan_only"})
        options = self.project_request_options(request, read_flag(request, "plan_only"), node.project_id)
        return self.accepted(delete_node(node, options))

    def partial_update(self, request: Request, identifier: str) -> Response:
        """Change the name, the role, the metadata, the profile, or the taint of a node by an action."""
        own = [f"/{name}" for name in NodeSerializer._declared_fields if name not in CHANGEABLE]
        patch = read_patch(request.data, internal=own, mandatory=("/name", "/profile", "/tainted", "/role"))
        node = self.get_object(request, identifier)
        refuse_unknown_arguments(request.query_params, {"plan_only"})
        changes = changes_of({**columns_of(node, CHANGEABLE), "profile": str(node.profile.uuid)}, patch)
        plan_only = read_flag(request, "plan_only")
        creates = "profile" in changes
        options = self.project_request_options(request, plan_only, node.project_id, creates=creates, record=node)
        return self.accepted(update_node(node, changes, options))

    def check(self, request: Request, identifier: str) -> Response:
        """Check by an action whether the server of a node runs. The node is ACTIVE or ERROR afterwards."""
        node = self.get_object(request, identifier)
        plan_only = read_body(request, OptionsSerializer)["plan_only"]
        return self.accepted(check_node(node, self.project_request_options(request, plan_only, node.project_id)))

    def recover(self, request: Request, identifier: str) -> Response:
        """Repair a node by an action if its server does not run."""
        node = self.get_object(request, identifier)
        inputs = read_body(request, NodeRecoverySerializer)
        plan_only = inputs.pop("plan_only")
        options = self.project_request_options(request, plan_only, node.project_id, creates=True, record=node)
        return self.accepted(recover_node(node, **inputs, options=options))
