"""The bodies of requests to have something done to clusters. What follows from several attributes is asked later."""

from typing import Any

from rest_framework import serializers

from cluster.models.clusters import UNLIMITED
from cluster.models.policies import LAST_PRIORITY
from cluster.models.profiles import NAME_LENGTH
from cluster.sizes import MOST_NODES, AdjustmentType
from plans.operations_api import OperationSerializer, OptionsSerializer
from watcher_site.api.bodies import FlagField
from watcher_site.api.versions import Version

RECOVERIES = ("REBOOT", "REBUILD", "RECREATE")


class ClusterOperationSerializer(OperationSerializer):
    cluster = serializers.UUIDField()


class NewClusterSerializer(OptionsSerializer):
    """The body of POST."""

    name = serializers.CharField(max_length=NAME_LENGTH)
    profile = serializers.CharField(max_length=NAME_LENGTH, help_text="its UUID or its name")
    min_size = serializers.IntegerField(required=False, default=0)
    max_size = serializers.IntegerField(required=False, default=UNLIMITED, help_text="-1: there is no limit")
    desired_capacity = serializers.IntegerField(required=False, help_text="min_size, where it is left out")
    timeout = serializers.IntegerField(required=False, default=0, help_text="of its actions, in seconds")
    metadata = serializers.DictField(required=False, allow_null=True)

    argument = "cluster"


class ScaleSerializer(OptionsSerializer):
    count = serializers.IntegerField(required=False, min_value=1, max_value=MOST_NODES)


class ResizeSerializer(OptionsSerializer):
    adjustment_type = serializers.ChoiceField(AdjustmentType.choices, required=False)
    number = serializers.FloatField(required=False, help_text="of nodes, or percent; below zero: fewer")
    min_size = serializers.IntegerField(required=False)
    max_size = serializers.IntegerField(required=False, help_text="-1: there is no limit")
    min_step = serializers.IntegerField(
        required=False, min_value=1, max_value=MOST_NODES, help_text="how many nodes a percentage comes to at least"
    )
    strict = FlagField(
        required=False, help_text="whether a size outside of the bounds is refused; else the nearest is taken"
    )


class NodesSerializer(OptionsSerializer):
    nodes = serializers.ListField(child=serializers.UUIDField(), max_length=MOST_NODES)


class LeavingNodesSerializer(NodesSerializer):
    destroy_after_deletion = FlagField(required=False, help_text="whether they are deleted with their servers")


class RecoverySerializer(OptionsSerializer):
    operation = serializers.ChoiceField(RECOVERIES, required=False)
    check = FlagField(required=False, help_text="whether their servers are looked at first")
    check_capacity = FlagField(required=False, help_text="whether as many nodes are created as are missing")


class ActionsSerializer(serializers.Serializer[Any]):
    """One of these, as `plans.clusters.api.OPERATIONS` has them."""

    scale_in = ScaleSerializer(required=False)
    scale_out = ScaleSerializer(required=False)
    resize = ResizeSerializer(required=False)
    add_nodes = NodesSerializer(required=False)
    del_nodes = LeavingNodesSerializer(required=False)
    check = OptionsSerializer(required=False)
    recover = RecoverySerializer(required=False)

    argument = "actions"
    since: dict[str, Version] = {}


class AttachmentSerializer(OptionsSerializer):
    policy = serializers.CharField(max_length=NAME_LENGTH, help_text="its UUID or its name")
    priority = serializers.IntegerField(
        required=False, min_value=0, max_value=LAST_PRIORITY, help_text="left out: its type's"
    )
    enabled = FlagField(required=False)

    argument = "policy"
