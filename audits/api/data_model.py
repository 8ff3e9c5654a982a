"""``/v1/data_model``: the cluster model that strategies read (docs/compatibility.md, "Data model")."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Q
from drf_spectacular.utils import OpenApiParameter, PolymorphicProxySerializer, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from audits.engine.scope import apply_scope
from audits.models import Audit
from cluster.models import ComputeNode
from cluster.snapshot import ClusterSnapshot, NodeSnapshot, ServerSnapshot
from cluster.snapshot.storage import PoolSnapshot, StorageNodeSnapshot, VolumeSnapshot
from watcher_site.api.bodies import UUID_SCHEMA
from watcher_site.api.paging import refuse_unknown_arguments
from watcher_site.api.versions import Version, used_by
from watcher_site.api.views import ResourceView
from watcher_site.refusals import Invalid, NotFound

Row = dict[str, Any]


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


class VolumeInPoolSerializer(serializers.Serializer[Any]):
    """A volume in its pool on its storage node. Without volumes or pools, their fields are absent."""

    node_host = serializers.CharField()
    node_zone = serializers.CharField()
    node_status = serializers.ChoiceField(["enabled", "disabled"])
    node_state = serializers.ChoiceField(["up", "down"])
    node_volume_type = serializers.ListField(
        child=serializers.CharField(), help_text="volume types that the storage node provides"
    )
    pool_name = serializers.CharField(required=False)
    pool_total_volumes = serializers.IntegerField(required=False)
    pool_total_capacity_gb = serializers.IntegerField(required=False)
    pool_free_capacity_gb = serializers.IntegerField(required=False)
    pool_provisioned_capacity_gb = serializers.IntegerField(required=False)
    pool_allocated_capacity_gb = serializers.IntegerField(required=False)
    pool_virtual_free = serializers.IntegerField(required=False, help_text="GB that can still be provisioned")
    volume_uuid = serializers.UUIDField(required=False)
    volume_name = serializers.CharField(required=False)
    volume_size = serializers.IntegerField(required=False, help_text="GB")
    volume_status = serializers.CharField(required=False)
    volume_host = serializers.CharField(required=False, help_text="name of the pool")
    volume_volume_type = serializers.CharField(required=False, allow_null=True)
    volume_attachments = serializers.ListField(
        required=False, child=serializers.DictField(), help_text="objects with server_id and attachment_id"
    )
    volume_multiattach = serializers.BooleanField(required=False)
    volume_bootable = serializers.BooleanField(required=False)
    volume_snapshot_id = serializers.CharField(required=False)
    volume_project_id = serializers.CharField(required=False)
    volume_metadata = serializers.DictField(required=False)
    volume_created_at = serializers.DateTimeField(required=False)


@extend_schema_field(
    PolymorphicProxySerializer(
        component_name="DataModelRow",
        serializers=[NodeAndServerSerializer, VolumeInPoolSerializer],
        resource_type_field_name=None,
        many=True,
    )
)
class RowsField(serializers.ListField):
    """Rows of the data model that ``data_model_type`` of the request selects."""


class ComputeDataModelSerializer(serializers.Serializer[Any]):
    context = NodeAndServerSerializer(many=True)  # type: ignore[assignment]


class DataModelSerializer(serializers.Serializer[Any]):
    context = RowsField()  # type: ignore[assignment]


def fields_with_prefix(serializer: type[serializers.Serializer[Any]], prefix: str) -> list[str]:
    """Return the names of the fields with a prefix, without the prefix: the attributes of one kind of object."""
    return [name.removeprefix(prefix) for name in serializer._declared_fields if name.startswith(prefix)]


NODE_FIELDS, SERVER_FIELDS = (
    fields_with_prefix(NodeAndServerSerializer, "node_"),
    fields_with_prefix(NodeAndServerSerializer, "server_"),
)
STORAGE_NODE_FIELDS, POOL_FIELDS = (
    fields_with_prefix(VolumeInPoolSerializer, "node_"),
    fields_with_prefix(VolumeInPoolSerializer, "pool_"),
)
VOLUME_FIELDS = fields_with_prefix(VolumeInPoolSerializer, "volume_")


# The data models that the API shows, with the version that introduced each.
MODELS: Mapping[str, Version] = {"compute": (1, 3), "storage": (1, 8)}


def models_at(version: Version) -> list[str]:
    return [model for model, since in MODELS.items() if version >= since]


class DataModelView(ResourceView):
    model = ComputeNode
    title = "Data model"
    policy = "data_model"
    since = (1, 3)

    @classmethod
    def query_parameters_at(cls, version: Version) -> list[Any]:
        return [
            OpenApiParameter("data_model_type", str, enum=models_at(version), default="compute"),
            OpenApiParameter(
                "audit_uuid",
                {"oneOf": [UUID_SCHEMA, {"type": "integer", "minimum": 1}]},
                description="UUID or id of an audit, to return only the objects in its scope",
            ),
        ]

    @classmethod
    def answers_at(cls, version: Version) -> dict[str, tuple[int, Any]]:
        has_storage = "storage" in models_at(version)
        return {"short_list": (200, DataModelSerializer if has_storage else ComputeDataModelSerializer)}

    def short_list(self, request: Request) -> Response:
        """Return one object for each server with its node, or, from 1.8, for each volume with its pool.

        There is also one object for each node without servers, pool without volumes and storage node without pools.
        """
        refuse_unknown_arguments(request.query_params, {"data_model_type", "audit_uuid"})
        kind = request.query_params.get("data_model_type", "compute")
        version = used_by(request)
        if kind not in models_at(version):
            raise NotFound(f"The {kind} data model could not be found")
        cluster = cluster_in_scope(request.query_params.get("audit_uuid"))
        if kind == "storage":
            return Response({"context": storage_rows(cluster)})
        nodes = sorted(cluster.nodes.values(), key=lambda node: str(node.uuid))
        return Response({"context": [row for node in nodes for row in rows(node, version)]})


def cluster_in_scope(identifier: str | None) -> ClusterSnapshot:
    """Return the cluster, within the scope of an audit if one is given.

    Raises:
        Invalid: the audit does not exist.
    """
    if identifier is None:
        return ClusterSnapshot.load()
    audit = Audit.objects.present().named(identifier).exclude(Q(name__iexact=identifier)).first()
    if audit is None:
        raise Invalid(f"Expected a uuid or int but received {identifier}.")
    return apply_scope(ClusterSnapshot.load(), audit.scope)


def rows(node: NodeSnapshot, version: Version) -> list[dict[str, Any]]:
    node_part = {f"node_{name}": getattr(node, name) for name in NODE_FIELDS}
    servers = sorted(node.servers, key=lambda server: str(server.uuid))
    return [node_part | server_part(server, version) for server in servers] or [node_part]


def server_part(server: ServerSnapshot, version: Version) -> dict[str, Any]:
    since = NodeAndServerSerializer.since
    fields = {f"server_{name}": name for name in SERVER_FIELDS}
    return {field: getattr(server, name) for field, name in fields.items() if version >= since.get(field, (1, 3))}


def attributes(prefix: str, names: list[str], item: StorageNodeSnapshot | PoolSnapshot | VolumeSnapshot) -> Row:
    return {f"{prefix}_{name}": getattr(item, name) for name in names}


def storage_rows(cluster: ClusterSnapshot) -> list[Row]:
    """Return the rows, sorted by host, name of the pool and UUID of the volume."""
    rows = []
    for node in cluster.storage.nodes.values():
        node_part = attributes("node", STORAGE_NODE_FIELDS, node)
        rows += [node_part | row for pool in node.pools for row in pool_rows(pool)] or [node_part]
    return rows


def pool_rows(pool: PoolSnapshot) -> list[Row]:
    pool_part = attributes("pool", POOL_FIELDS, pool)
    volumes = sorted(pool.volumes, key=lambda volume: str(volume.uuid))
    return [pool_part | attributes("volume", VOLUME_FIELDS, volume) for volume in volumes] or [pool_part]
