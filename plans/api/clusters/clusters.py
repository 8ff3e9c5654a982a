"""``/v1/clusters``: read them, and have them created, changed, deleted, and operated on."""

from collections.abc import Callable
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.models import Cluster
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
from plans.api.clusters.reading import ClusterReading, ClusterSerializer
from plans.api.operations import PLAN_ONLY_PARAMETER, Operating, OptionsSerializer, changes_of, columns_of
from plans.operations.base import Operation
from plans.operations.cluster_sizes import add_nodes, del_nodes, resize, scale_in, scale_out
from plans.operations.clusters import (
    CHANGEABLE,
    check_cluster,
    create_cluster,
    delete_cluster,
    recover_cluster,
    update_cluster,
)
from watcher_site.api.bodies import read_attributes, read_body, read_patch
from watcher_site.api.paging import read_flag, refuse_unknown_arguments
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
SIZES = ("/min_size", "/max_size", "/desired_capacity")
FORCE = OpenApiParameter(
    "force", bool, description="whether its nodes are deleted with it, and what is being done to it is cancelled first"
)


class ClusterView(Operating, ClusterReading):
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

    def history_event(self) -> str:
        body = self.document()
        operation = next(iter(body), None) if self.action == "act" and isinstance(body, dict) else None
        return f"cluster.{operation}" if operation in OPERATIONS else super().history_event()

    def create(self, request: Request) -> Response:
        """Make a cluster, and have its nodes created by an action."""
        attributes = read_body(request, NewClusterSerializer, ClusterSerializer._declared_fields)
        options = self.request_options(request, attributes.pop("plan_only"))
        return self.accepted(create_cluster(**attributes, options=options))

    def partial_update(self, request: Request, identifier: str) -> Response:
        """Have the name, the profile, the timeout or the metadata changed by an action."""
        refuse_sizes(request.data)
        patch = read_patch(
            request.data,
            internal=[f"/{name}" for name in ClusterSerializer._declared_fields if name not in CHANGEABLE],
            mandatory=("/name", "/profile", "/timeout"),
        )
        cluster = self.get_object(request, identifier)
        refuse_unknown_arguments(request.query_params, {"plan_only"})
        changes = changes_of({**columns_of(cluster, CHANGEABLE), "profile": str(cluster.profile.uuid)}, patch)
        options = self.request_options(request, read_flag(request, "plan_only"))
        return self.accepted(update_cluster(cluster, changes, options=options))

    def destroy(self, request: Request, identifier: str) -> Response:
        """Delete a cluster by an action; if forced, cancel other operations on it and delete its nodes, too."""
        cluster = self.get_object(request, identifier)
        refuse_unknown_arguments(request.query_params, {"force", "plan_only"})
        force, options = read_flag(request, "force"), self.request_options(request, read_flag(request, "plan_only"))
        return self.accepted(delete_cluster(cluster, force=force, options=options))

    def scale_in(self, request: Request, identifier: str) -> Response:
        """Have nodes taken from a cluster by an action: so many, or as many as its scaling policy says, or one."""
        return self.operate(request, identifier, "scale_in", request.data)

    def scale_out(self, request: Request, identifier: str) -> Response:
        """Have nodes added to a cluster by an action: so many, or as many as its scaling policy says, or one."""
        return self.operate(request, identifier, "scale_out", request.data)

    def resize(self, request: Request, identifier: str) -> Response:
        """Have the size of a cluster adjusted by an action, or its bounds, or both."""
        return self.operate(request, identifier, "resize", request.data)

    def add_nodes(self, request: Request, identifier: str) -> Response:
        """Have nodes that stand alone join a cluster by an action."""
        return self.operate(request, identifier, "add_nodes", request.data)

    def del_nodes(self, request: Request, identifier: str) -> Response:
        """Have members leave a cluster by an action, and be deleted if that is asked for."""
        return self.operate(request, identifier, "del_nodes", request.data)

    def check(self, request: Request, identifier: str) -> Response:
        """Have an action look whether the servers of a cluster's nodes run."""
        return self.operate(request, identifier, "check", request.data)

    def recover(self, request: Request, identifier: str) -> Response:
        """Have the nodes of a cluster repaired by an action that need it."""
        return self.operate(request, identifier, "recover", request.data)

    def act(self, request: Request, identifier: str) -> Response:
        """Have one of the operations done that is named in the body, as OpenStack's cluster service takes it."""
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
        options = self.request_options(request, inputs.pop("plan_only"))
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
