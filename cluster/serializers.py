"""Profiles and nodes, as the API shows them."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from cluster.models import Node, Profile
from cluster.models.profiles import NAME_LENGTH
from watcher_site.api.serializers import ResourceSerializer, links_field
from watcher_site.api.versions import Version


class ProfileSerializer(ResourceSerializer):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    type = serializers.ChoiceField(Profile.Type.choices)
    links = links_field()
    spec = serializers.DictField(help_text="flavor, image and metadata of the servers that are created from it")
    metadata = serializers.DictField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        collection = "profiles"
        short = ("uuid", "name", "type", "links")
        json = ("spec", "metadata")
        computed = ("links",)


class SpecSerializer(serializers.Serializer[Any]):
    """The schema of a spec in the OpenAPI document; `cluster.profiles` checks specs."""

    flavor = serializers.CharField(max_length=255, help_text="its id or its name")
    image = serializers.CharField(max_length=255, required=False, allow_null=True, help_text="its id")
    metadata = serializers.DictField(child=serializers.CharField(max_length=255), required=False)


@extend_schema_field(SpecSerializer())
class SpecField(serializers.JSONField):
    """A spec as it was sent: each of its mistakes is worth words of its own."""


class NewProfileSerializer(serializers.Serializer[Any]):
    """The body of POST."""

    name = serializers.CharField(max_length=NAME_LENGTH)
    spec = SpecField()
    metadata = serializers.DictField(required=False, allow_null=True)

    argument = "profile"
    since: dict[str, Version] = {}


class NodeSerializer(ResourceSerializer):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    profile_uuid = serializers.UUIDField()
    profile_name = serializers.CharField()
    role = serializers.CharField(allow_blank=True)
    status = serializers.ChoiceField(Node.Status.choices)
    physical_id = serializers.UUIDField(allow_null=True, help_text="the UUID of its server")
    cluster_uuid = serializers.UUIDField(allow_null=True, help_text="the one that it is a member of")
    index = serializers.IntegerField(help_text="in the order of joining its cluster; -1: it stands alone")
    links = links_field()
    tainted = serializers.BooleanField(help_text="it is the first to go when its cluster shrinks")
    data = serializers.DictField(help_text="what policies decided about it")  # type: ignore[assignment]
    status_reason = serializers.CharField(allow_null=True)
    unhealthy_reason = serializers.CharField(
        allow_null=True, help_text="why a person says that it is unhealthy; null: nobody does"
    )
    metadata = serializers.DictField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        collection = "nodes"
        short = (
            *("uuid", "name", "profile_uuid", "profile_name", "role", "status", "physical_id"),
            *("cluster_uuid", "index", "links"),
        )
        columns = {
            "profile_uuid": "profile__uuid",
            "profile_name": "profile__name",
            "cluster_uuid": "cluster__uuid",
        }
        json = ("metadata", "data")
        computed = ("links",)
