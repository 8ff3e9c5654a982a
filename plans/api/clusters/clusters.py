"""``/v1/clusters``: read, create, change, delete and operate clusters."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.api.profiles import CLUSTERS
from cluster.models import Cluster, Node, PolicyBinding
from cluster.models.clusters import names_among
from cluster.operations.named_records import find_unique
from plans.api.clusters.bodies import (
    ActionsSerializer,
    ClusterOperationSerializer,
    LeavingNodesSerializer,
    NewClusterSerializer,
    NodesSerializer,
    RecoverySerializer,
    ResizeSerializer,
    ScaleSerializer,
)
from plans.api.clusters.ownership import OwnedFromTenants
from plans.api.operations import PLAN_ONLY_PARAMETER, OptionsSerializer, changes_of, columns_of
from plans.operations.base import Operation
from plans.operations.clusters import (
    CHANGEABLE,
    add_nodes,
    check_cluster,
    create_cluster,
    del_nodes,
    delete_cluster,
    recover_cluster,
    resize,
    scale_in,
    scale_out,
    update_cluster,
)
from watcher_site.api.bodies import read_attributes, read_body, read_patch
from watcher_site.api.paging import read_flag, refuse_unknown_arguments
from watcher_site.api.serializers import ResourceSerializer, Row, links_field
from watcher_site.api.versions import TENANTS
from watcher_site.api.views import ResourceView
from watcher_site.refusals import Invalid

OPERATIONS: dict[str, Callable[..., Operation]] = {
    "scale_in": scale_in,
    "scale_out": scale_out,
    "resize": resize,
    "add_nodes": add_nodes,
    "del_nodes": del_nodes,
    "check": check_cluster,
    "recover": recover_cluster,
}
# The operations that may create servers.
CREATING = ("scale_out", "resize", "recover")
SIZES = ("/min_size", "/max_size", "/desired_capacity")
FORCE = OpenApiParameter(
    "force", bool, description="whether running operations are cancelled, and the nodes are deleted with the cluster"
)


class ClusterSerializer(ResourceSerializer):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    profile_uuid = serializers.UUIDField()
    profile_name = serializers.CharField()
    min_size = serializers.IntegerField()
    max_size = serializers.IntegerField(help_text="-1: no limit")
    desired_capacity = serializers.IntegerField(help_text="intended number of nodes")
    status = serializers.ChoiceField(Cluster.Status.choices)
    links = links_field()
    status_reason = serializers.CharField(allow_null=True)
    timeout = serializers.IntegerField(help_text="timeout of its actions in seconds; 0: the default of the site")
    metadata = serializers.DictField()
    nodes = serializers.ListField(
        child=serializers.UUIDField(), help_text="members of the cluster, in the order of joining"
    )
    policies = serializers.ListField(
        child=serializers.UUIDField(), help_text="policies in the order in which they are checked"
    )
    init_at = serializers.DateTimeField(allow_null=True, help_text="time at which the creation began")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(allow_null=True)
    project_id = serializers.CharField(help_text="project of the object; empty: no project")

    class Meta:
        collection = "clusters"
        short = (
            *("uuid", "name", "profile_uuid", "profile_name", "min_size", "max_size", "desired_capacity"),
            *("status", "links", "project_id"),
        )
        since = {"project_id": TENANTS}
        columns = {"profile_uuid": "profile__uuid", "profile_name": "profile__name"}
        json = ("metadata",)
        computed = ("links", "nodes", "policies")

    @classmethod
    def add_nodes(cls, rows: list[Row]) -> None:
        members = Node.objects.present().order_by("index", "pk")
        add_uuids(rows, "nodes", members, "uuid")

    @classmethod
    def add_policies(cls, rows: list[Row]) -> None:
        bindings = PolicyBinding.objects.present().order_by("priority", "pk")
        add_uuids(rows, "policies", bindings, "policy__uuid")


def add_uuids(rows: list[Row], field: str, related: QuerySet[Any], column: str) -> None:
    """Add to rows of clusters the UUIDs of related objects, in their order, with one query."""
    found: dict[UUID, list[UUID]] = defaultdict(list)
    of_these = related.filter(cluster__uuid__in=[row["uuid"] for row in rows])
    for cluster, uuid in of_these.values_list("cluster__uuid", column):
        found[cluster].append(uuid)
    for row in rows:
        row[field] = found[row["uuid"]]


class ClusterView(OwnedFromTenants, ResourceView):
    since = CLUSTERS
    serializer_class = ClusterSerializer
    model = Cluster
    title = "Cluster"
    policy = "cluster"
    identifiers = ("uuid", "name")
    arguments_since = {"sort": CLUSTERS, "project_id": TENANTS}
    filters = ["name", "status", "profile", "project_id"]
    repeatable = frozenset({"name", "status"})
    sort_keys = {
        "uuid": "uuid",
        "name": "name",
        "status": "status",
        "created_at": "created_at",
        "updated_at": "updated_at",
    }
    filter_schemas = {"status": {"enum": Cluster.Status.values}}
    operates_on = "cluster"
    bodies = {
        "create": NewClusterSerializer,
        "scale_in": ScaleSerializer,
        "scale_out": ScaleSerializer,
        "resize": ResizeSerializer,
        "add_nodes": NodesSerializer,
        "del_nodes": LeavingNodesSerializer,
        "check": OptionsSerializer,
        "recover": RecoverySerializer,
        "act": ActionsSerializer,
    }
    arguments = {"partial_update": [PLAN_ONLY_PARAMETER], "destroy": [FORCE, PLAN_ONLY_PARAMETER]}
    answers = dict.fromkeys((*bodies, "partial_update", "destroy"), (202, ClusterOperationSerializer))
    permissions_required = dict.fromkeys((*OPERATIONS, "act"), "cluster.operate_cluster")
    example_step = {"op": "replace", "path": "/name", "value": "web servers"}

    def lookup(self, identifier: str) -> QuerySet[Any]:
        return find_unique(self.get_queryset(), identifier)

    def filter_name(self, queryset: QuerySet[Cluster], value: list[str]) -> QuerySet[Cluster]:
        return queryset.filter(names_among(value))

    def filter_status(self, queryset: QuerySet[Cluster], value: list[str]) -> QuerySet[Cluster]:
        if unknown := [status for status in value if status not in Cluster.Status.values]:
            raise Invalid(f"Invalid input for field/attribute status. Value: '{unknown[0]}'. There is no such status.")
        return queryset.filter(status__in=value)

    def filter_profile(self, queryset: Any, value: str) -> QuerySet[Cluster]:
        found: QuerySet[Cluster] = queryset.of_profile(value)
        return found

    def history_event(self) -> str:
        body = self.document()
        operation = next(iter(body), None) if self.action == "act" and isinstance(body, dict) else None
        return f"cluster.{operation}" if operation in OPERATIONS else super().history_event()

    def create(self, request: Request) -> Response:
        """Create a cluster. An action creates its nodes."""
        attributes = read_body(request, NewClusterSerializer, ClusterSerializer._declared_fields)
        plan_only, wanted = attributes.pop("plan_only"), attributes.pop("project_id", None)
        project = self.choose_project(wanted)
        options = self.project_request_options(request, plan_only, project, creates=True)
        return self.accepted(create_cluster(**attributes, project_id=project, options=options))

    def partial_update(self, request: Request, identifier: str) -> Response:
        """Change the name, the profile, the timeout or the metadata of a cluster by an action."""
        refuse_sizes(request.data)
        patch = read_patch(
            request.data,
            internal=[f"/{name}" for name in ClusterSerializer._declared_fields if name not in CHANGEABLE],
            mandatory=("/name", "/profile", "/timeout"),
        )
        cluster = self.get_object(request, identifier)
        refuse_unknown_arguments(request.query_params, {"plan_only"})
        changes = changes_of({**columns_of(cluster, CHANGEABLE), "profile": str(cluster.profile.uuid)}, patch)
        plan_only = read_flag(request, "plan_only")
        creates = "profile" in changes
        options = self.project_request_options(request, plan_only, cluster.project_id, creates=creates, record=cluster)
        return self.accepted(update_cluster(cluster, changes, options=options))

    def destroy(self, request: Request, identifier: str) -> Response:
        """Delete a cluster by an action; with force, also cancel other operations on it and delete its nodes."""
        cluster = self.get_object(request, identifier)
        refuse_unknown_arguments(request.query_params, {"force", "plan_only"})
        force, plan_only = read_flag(request, "force"), read_flag(request, "plan_only")
        options = self.project_request_options(request, plan_only, cluster.project_id)
        return self.accepted(delete_cluster(cluster, force=force, options=options))

    def scale_in(self, request: Request, identifier: str) -> Response:
        """Remove nodes from a cluster by an action: count, or the number of its scaling policy, or one."""
        return self.operate(request, identifier, "scale_in", request.data)

    def scale_out(self, request: Request, identifier: str) -> Response:
        """Add new nodes to a cluster by an action: count, or the number of its scaling policy, or one."""
        return self.operate(request, identifier, "scale_out", request.data)

    def resize(self, request: Request, identifier: str) -> Response:
        """Change the size of a cluster, its size limits, or both by an action."""
        return self.operate(request, identifier, "resize", request.data)

    def add_nodes(self, request: Request, identifier: str) -> Response:
        """Add nodes that are in no cluster to a cluster by an action."""
        return self.operate(request, identifier, "add_nodes", request.data)

    def del_nodes(self, request: Request, identifier: str) -> Response:
        """Remove nodes from a cluster by an action, and delete them if requested."""
        return self.operate(request, identifier, "del_nodes", request.data)

    def check(self, request: Request, identifier: str) -> Response:
        """Check by an action whether the servers of the nodes of a cluster run."""
        return self.operate(request, identifier, "check", request.data)

    def recover(self, request: Request, identifier: str) -> Response:
        """Repair the unhealthy nodes of a cluster by an action."""
        return self.operate(request, identifier, "recover", request.data)

    def act(self, request: Request, identifier: str) -> Response:
        """Perform the operation that the body names, in the format of OpenStack's cluster service."""
        document = request.data
        if not isinstance(document, dict) or len(document) != 1:
            raise Invalid("Invalid input for field/attribute actions. An object with one operation is expected.")
        (name, inputs) = next(iter(document.items()))
        if name not in OPERATIONS:
            raise Invalid(f"Unknown operation {name}. It must be one of {', '.join(OPERATIONS)}.")
        return self.operate(request, identifier, name, {} if inputs is None else inputs)

    def operate(self, request: Request, identifier: str, name: str, document: Any) -> Response:
        cluster: Cluster = self.get_object(request, identifier)
        inputs = read_attributes(document, self.bodies[name])
        plan_only, creates = inputs.pop("plan_only"), name in CREATING
        options = self.project_request_options(request, plan_only, cluster.project_id, creates=creates, record=cluster)
        return self.accepted(OPERATIONS[name](cluster, **inputs, options=options))


def refuse_sizes(document: Any) -> None:
    """Raise `Invalid` for a patch of a field that only a resize changes."""
    steps = document if isinstance(document, list) else []
    for step in steps:
        path = step.get("path") if isinstance(step, dict) else None
        if path in SIZES:
            raise Invalid(
                f"'{path}' is an internal attribute and can not be updated: "
                "POST /v1/clusters/{id}/resize changes it."
            )
