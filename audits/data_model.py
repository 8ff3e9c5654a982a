"""``/v1/data_model``: the cluster as strategies see it (`watcher-api` section 16)."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Q
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
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


class NodeAndServerSerializer(serializers.Serializer[Any]):
    """A server on its node; a node without servers has the ``node_…`` fields only."""

    node_uuid = serializers.UUIDField()
    node_hostname = serializers.CharField()
    node_status = serializers.ChoiceField(["enabled", "disabled"])
    node_disabled_reason = serializers.CharField(allow_null=True)
    node_state = serializers.ChoiceField(["up", "down"])
    node_memory = serializers.IntegerField(help_text="MB")
    node_memory_mb_reserved = serializers.IntegerField()
    node_disk = serializers.IntegerField(help_text="GB")
    node_disk_gb_reserved = serializers.IntegerField()
    node_vcpus = serializers.IntegerField()
    node_vcpu_reserved = serializers.IntegerField()
    node_memory_ratio = serializers.FloatField()
    node_vcpu_ratio = serializers.FloatField()
    node_disk_ratio = serializers.FloatField()
    server_uuid = serializers.UUIDField(required=False)
    server_name = serializers.CharField(required=False)
    server_state = serializers.CharField(required=False)
    server_watcher_exclude = serializers.BooleanField(required=False)
    server_memory = serializers.IntegerField(required=False, help_text="MB")
    server_disk = serializers.IntegerField(required=False, help_text="GB")
    server_vcpus = serializers.IntegerField(required=False)
    server_metadata = serializers.DictField(required=False)
    server_project_id = serializers.CharField(required=False)
    server_locked = serializers.BooleanField(required=False)
    server_pinned_az = serializers.CharField(required=False)
    server_flavor_extra_specs = serializers.DictField(required=False)

    since: Mapping[str, Version] = {"server_pinned_az": (1, 6), "server_flavor_extra_specs": (1, 6)}


class DataModelSerializer(serializers.Serializer[Any]):
    context = NodeAndServerSerializer(many=True)  # type: ignore[assignment]


def part(prefix: str) -> list[str]:
    """Return the fields with this prefix, without it: the attributes of a node or a server."""
    fields = NodeAndServerSerializer._declared_fields
    return [name.removeprefix(prefix) for name in fields if name.startswith(prefix)]


NODE_FIELDS, SERVER_FIELDS = part("node_"), part("server_")


class DataModelView(ResourceView):
    model = ComputeNode
    title = "Data model"
    policy = "data_model"
    since = (1, 3)
    answers = {"short_list": (200, DataModelSerializer)}
    query_parameters = [
        OpenApiParameter("data_model_type", str, enum=["compute"], default="compute"),
        OpenApiParameter("audit_uuid", str, description="the cluster as this audit's scope sees it; uuid or id"),
    ]

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
    since = NodeAndServerSerializer.since
    named = {f"server_{name}": name for name in SERVER_FIELDS}
    return {field: getattr(server, name) for field, name in named.items() if version >= since.get(field, (1, 3))}
