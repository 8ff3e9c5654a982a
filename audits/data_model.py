"""``/v1/data_model``: the cluster as strategies see it (`watcher-api` section 16)."""

from typing import Any

from django.db.models import Q
from rest_framework.request import Request
from rest_framework.response import Response

from audits.models import Audit
from audits.scope import narrow
from cluster.models import ComputeNode
from cluster.snapshot import ClusterSnapshot, NodeSnapshot, ServerSnapshot
from watcher_site.api.paging import refuse_unknown
from watcher_site.api.versions import Version, used_by
from watcher_site.api.views import ResourceView
from watcher_site.refusals import Invalid, NotFound

NODE_FIELDS = (
    "uuid",
    "hostname",
    "status",
    "disabled_reason",
    "state",
    "memory",
    "memory_mb_reserved",
    "disk",
    "disk_gb_reserved",
    "vcpus",
    "vcpu_reserved",
    "memory_ratio",
    "vcpu_ratio",
    "disk_ratio",
)
SERVER_FIELDS: dict[str, Version] = {
    "uuid": (1, 3),
    "name": (1, 3),
    "state": (1, 3),
    "watcher_exclude": (1, 3),
    "memory": (1, 3),
    "disk": (1, 3),
    "vcpus": (1, 3),
    "metadata": (1, 3),
    "project_id": (1, 3),
    "locked": (1, 3),
    "pinned_az": (1, 6),
    "flavor_extra_specs": (1, 6),
}


class DataModelView(ResourceView):
    model = ComputeNode
    title = "Data model"
    policy = "data_model"
    since = (1, 3)

    def short_list(self, request: Request) -> Response:
        """Show one object for each server on its node, and one for each node without servers."""
        refuse_unknown(request.query_params, {"data_model_type", "audit_uuid"})
        kind = request.query_params.get("data_model_type", "compute")
        if kind != "compute":
            raise NotFound(f"The {kind} data model could not be found")
        cluster = seen_by(request.query_params.get("audit_uuid"))
        version = used_by(request)
        nodes = sorted(cluster.nodes.values(), key=lambda node: str(node.uuid))
        return Response({"context": [row for node in nodes for row in rows(node, version)]})


def seen_by(identifier: str | None) -> ClusterSnapshot:
    """Return the cluster, as an audit's scope sees it where one is named.

    Raises:
        Invalid: there is no such audit, or its scope makes no sense here.
    """
    if identifier is None:
        return ClusterSnapshot.load()
    audit = Audit.objects.present().named(identifier).exclude(Q(name__iexact=identifier)).first()
    if audit is None:
        raise Invalid(f"Expected a uuid or int but received {identifier}.")
    return narrow(ClusterSnapshot.load(), audit.scope)


def rows(node: NodeSnapshot, version: Version) -> list[dict[str, Any]]:
    own = {f"node_{name}": getattr(node, name) for name in NODE_FIELDS}
    servers = sorted(node.servers, key=lambda server: str(server.uuid))
    return [own | server_part(server, version) for server in servers] or [own]


def server_part(server: ServerSnapshot, version: Version) -> dict[str, Any]:
    return {f"server_{name}": getattr(server, name) for name, since in SERVER_FIELDS.items() if version >= since}
