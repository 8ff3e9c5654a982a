"""Profiles and nodes, as the API shows them."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from cluster.models import Profile
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
    """The schema of a spec in the OpenAPI document; `cluster.operations.profiles` checks specs."""

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
