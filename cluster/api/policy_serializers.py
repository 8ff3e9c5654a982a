"""Policies and their types, as the API shows them."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from cluster.models.profiles import NAME_LENGTH
from watcher_site.api.serializers import ResourceSerializer, links_field
from watcher_site.api.versions import Version


class PolicySerializer(ResourceSerializer):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    type = serializers.CharField(help_text="one of /v1/policy_types")
    links = links_field()
    spec = serializers.DictField(help_text="its properties, as they were given")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        collection = "policies"
        short = ("uuid", "name", "type", "links")
        json = ("spec",)
        computed = ("links",)


@extend_schema_field({"type": "object", "description": "its properties, as the schema of the type has them"})
class PropertiesField(serializers.JSONField):
    """Properties as they were sent: each of their mistakes is worth words of its own."""


class PropertiesSerializer(serializers.Serializer[Any]):
    """The body that asks whether a policy could be made so."""

    type = serializers.CharField(max_length=255)
    spec = PropertiesField(required=False)

    argument = "policy"
    since: dict[str, Version] = {}


class NewPolicySerializer(PropertiesSerializer):
    """The body of POST."""

    name = serializers.CharField(max_length=NAME_LENGTH)


class CheckedPropertiesSerializer(serializers.Serializer[Any]):
    """The checked properties of a policy."""

    type = serializers.CharField()
    spec = serializers.DictField(help_text="with the defaults of what was left out")


class PolicyTypeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    description = serializers.CharField()
    priority = serializers.IntegerField(help_text="the smaller, the earlier its policies are asked")
    is_single = serializers.BooleanField(help_text="whether a cluster can have but one policy of the type")
    before = serializers.ListField(child=serializers.CharField(), help_text="the actions before which it is asked")
    after = serializers.ListField(child=serializers.CharField(), help_text="the actions after which it is asked")
    schema = serializers.DictField(help_text="the JSON Schema of the properties")


class PolicyTypesSerializer(serializers.Serializer[Any]):
    policy_types = PolicyTypeSerializer(many=True)
