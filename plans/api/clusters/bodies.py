"""The bodies of requests for operations on clusters. Rules that concern several attributes are checked later."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from cluster.models.clusters import MAX_PRIORITY, NAME_LENGTH, UNLIMITED
from cluster.policies.sizes import MAX_NODES, AdjustmentType
from plans.api.clusters.ownership import project_body_field
from plans.api.operations import OperationSerializer, OptionsSerializer
from plans.operations.clusters import MAX_TIMEOUT
from watcher_site.api.bodies import UUID_SCHEMA, FlagField
from watcher_site.api.versions import TENANTS, Version

RECOVERIES = ("REBOOT", "REBUILD", "RECREATE")


class ClusterOperationSerializer(OperationSerializer):
    cluster = serializers.UUIDField()


@extend_schema_field({"type": "integer", "minimum": 0, "maximum": MAX_NODES})
class SizeField(serializers.IntegerField):
    """A number of nodes, which `cluster.policies.sizes` validates."""


@extend_schema_field({"type": "integer", "minimum": UNLIMITED, "maximum": MAX_NODES})
class LargestSizeField(serializers.IntegerField):
    """A number of nodes or no limit, which `cluster.policies.sizes` validates."""


@extend_schema_field({"type": "integer", "minimum": 0, "maximum": MAX_TIMEOUT})
class TimeoutField(serializers.IntegerField):
    """A number of seconds, which `plans.operations.clusters` validates."""


class NewClusterSerializer(OptionsSerializer):
    """The body of POST."""

    name = serializers.CharField(max_length=NAME_LENGTH)
    profile = serializers.CharField(max_length=NAME_LENGTH, help_text="UUID or name of the profile")
    min_size = SizeField(required=False, default=0)
    max_size = LargestSizeField(required=False, default=UNLIMITED, help_text="-1: no limit")
    desired_capacity = SizeField(required=False, help_text="default: min_size")
    timeout = TimeoutField(required=False, default=0, help_text="timeout of its actions in seconds")
    metadata = serializers.DictField(required=False, allow_null=True)
    project_id = project_body_field("default: the user's only project; empty: no project")

    argument = "cluster"
    since = {"project_id": TENANTS}


class ScaleSerializer(OptionsSerializer):
    count = serializers.IntegerField(required=False, min_value=1, max_value=MAX_NODES)


class ResizeSerializer(OptionsSerializer):
    adjustment_type = serializers.ChoiceField(AdjustmentType.choices, required=False)
    number = serializers.FloatField(
        required=False, help_text="number of nodes or percentage; a negative value removes nodes"
    )
    min_size = SizeField(required=False)
    max_size = LargestSizeField(required=False, help_text="-1: no limit")
    min_step = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_NODES, help_text="minimum number of nodes for a percentage"
    )
    strict = FlagField(
        required=False,
        help_text="whether a size outside of the limits is refused; otherwise the nearest limit applies",
    )


@extend_schema_field({"type": "array", "items": UUID_SCHEMA, "minItems": 1, "maxItems": MAX_NODES})
class NodesField(serializers.ListField):
    """UUIDs of nodes, of which the operation requires at least one."""


class NodesSerializer(OptionsSerializer):
    nodes = NodesField(child=serializers.UUIDField(), max_length=MAX_NODES)


class LeavingNodesSerializer(NodesSerializer):
    destroy_after_deletion = FlagField(required=False, help_text="whether the nodes and their servers are deleted")


class RecoverySerializer(OptionsSerializer):
    operation = serializers.ChoiceField(RECOVERIES, required=False)
    check = FlagField(required=False, help_text="whether the servers are checked first")
    check_capacity = FlagField(required=False, help_text="whether missing nodes are created")


class ActionsSerializer(serializers.Serializer[Any]):
    """One of the operations of `plans.api.clusters.clusters.OPERATIONS`, with its inputs."""

    scale_in = ScaleSerializer(required=False)
    scale_out = ScaleSerializer(required=False)
    resize = ResizeSerializer(required=False)
    add_nodes = NodesSerializer(required=False)
    del_nodes = LeavingNodesSerializer(required=False)
    check = OptionsSerializer(required=False)
    recover = RecoverySerializer(required=False)

    argument = "actions"
    schema_rules = {"minProperties": 1, "maxProperties": 1}
    since: dict[str, Version] = {}


class AttachmentSerializer(OptionsSerializer):
    policy = serializers.CharField(max_length=NAME_LENGTH, help_text="UUID or name of the policy")
    priority = serializers.IntegerField(
        required=False, min_value=0, max_value=MAX_PRIORITY, help_text="default: the priority of the policy type"
    )
    enabled = FlagField(required=False)

    argument = "policy"
