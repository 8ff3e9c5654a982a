"""``/v1/profiles``."""

from functools import cached_property
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.drivers.server_properties import LONGEST_USER_DATA, NAMES, NETWORK, PROPERTIES
from cluster.models import Profile
from cluster.models.clusters import NAME_LENGTH
from cluster.operations.named_records import ambiguous_identifier, is_uuid
from cluster.operations.profiles import CHANGEABLE, change_profile, create_profile, delete_profile
from watcher_site.accounts.projects import PROJECT_LENGTH
from watcher_site.api.bodies import DescribedField, FlagField, apply_patch, read_body, read_patch
from watcher_site.api.errors import NotAcceptableHere
from watcher_site.api.permissions import OwnedByProjects
from watcher_site.api.serializers import ResourceSerializer, links_field
from watcher_site.api.versions import PROFILES, TENANTS, Version, used_by
from watcher_site.api.views import NamedLookup, ResourceView

# The version that added clusters, profiles and policies.
CLUSTERS = (1, 12)
NETWORKS = {
    "oneOf": [{"type": "string", "enum": ["auto", "none"]}, {"type": "array", "items": NETWORK, "minItems": 1}]
}


class ProfileSerializer(ResourceSerializer):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    type = serializers.ChoiceField(Profile.Type.choices)
    links = links_field()
    spec = serializers.DictField(help_text="properties of the servers that are created from the profile")
    metadata = serializers.DictField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(allow_null=True)
    project_id = serializers.CharField(help_text="project of the profile; empty: all projects may use it")

    class Meta:
        collection = "profiles"
        short = ("uuid", "name", "type", "links", "project_id")
        since = {"project_id": PROFILES}
        json = ("spec", "metadata")
        computed = ("links",)


class SpecSerializer(serializers.Serializer[Any]):
    """The schema of a spec in the OpenAPI document; `cluster.operations.profiles` checks specs."""

    flavor = serializers.CharField(max_length=255, help_text="id or name of the flavor")
    image = serializers.CharField(max_length=255, required=False, allow_null=True, help_text="id of the image")
    metadata = serializers.DictField(child=serializers.CharField(max_length=255), required=False)
    availability_zone = serializers.CharField(max_length=255, required=False, allow_null=True)
    key_name = serializers.CharField(max_length=255, required=False)
    networks = DescribedField(NETWORKS, required=False)
    security_groups = DescribedField(PROPERTIES["security_groups"], required=False)
    user_data = serializers.CharField(max_length=LONGEST_USER_DATA, required=False)
    config_drive = FlagField(required=False)
    block_device_mapping_v2 = DescribedField(PROPERTIES["block_device_mapping_v2"], required=False)
    scheduler_hints = DescribedField(PROPERTIES["scheduler_hints"], required=False)
    tags = DescribedField(PROPERTIES["tags"], required=False)

    since = dict.fromkeys(("availability_zone", *NAMES), TENANTS)


@extend_schema_field(SpecSerializer())
class SpecField(serializers.JSONField):
    """An unvalidated spec; `cluster.operations.profiles` checks it with more specific messages."""


class NewProfileSerializer(serializers.Serializer[Any]):
    """The body of POST."""

    name = serializers.CharField(max_length=NAME_LENGTH)
    spec = SpecField()
    metadata = serializers.DictField(required=False, allow_null=True)
    project_id = serializers.CharField(
        max_length=PROJECT_LENGTH,
        required=False,
        allow_blank=True,
        help_text="one of the user's projects; users with permission on all profiles may name any project, or none",
    )

    argument = "profile"
    since: dict[str, Version] = {"project_id": PROFILES}


class ProfileView(OwnedByProjects, NamedLookup, ResourceView):
    """Profiles, which belong to projects since version `PROFILES`. Before, they require a permission on the model."""

    since = CLUSTERS
    serializer_class = ProfileSerializer
    model = Profile
    title = "Profile"
    policy = "profile"
    shown_project = "project_id"
    shares_unowned = True
    identifiers = ("uuid", "name")
    arguments_since = {"project_id": PROFILES}
    filters = ["name", "project_id"]
    sort_keys = {"uuid": "uuid", "name": "name", "created_at": "created_at", "updated_at": "updated_at"}
    bodies = {"create": NewProfileSerializer}
    example_step = {"op": "replace", "path": "/name", "value": "small web servers"}

    @cached_property
    def projects(self) -> frozenset[str]:
        return super().projects if used_by(self.request) >= PROFILES else frozenset()

    def get_queryset(self) -> QuerySet[Any]:
        if used_by(self.request) >= PROFILES:
            return super().get_queryset()
        return super(OwnedByProjects, self).get_queryset()

    def lookup(self, identifier: str) -> QuerySet[Any]:
        """Select the profile in the path. Raises: `Invalid`: profiles of several projects have the name."""
        profiles = super().lookup(identifier)
        if not is_uuid(identifier) and len(profiles.order_by().values_list("pk", flat=True)[:2]) > 1:
            raise ambiguous_identifier(identifier)
        return profiles

    def filter_name(self, queryset: QuerySet[Profile], value: str) -> QuerySet[Profile]:
        return queryset.filter(name__iexact=value)

    def filter_project_id(self, queryset: QuerySet[Profile], value: str) -> QuerySet[Profile]:
        return queryset.filter(project_id=value)

    def create(self, request: Request) -> Response:
        attributes = read_body(request, NewProfileSerializer, ProfileSerializer._declared_fields)
        for name in attributes["spec"] if isinstance(attributes["spec"], dict) else ():
            if used_by(request) < SpecSerializer.since.get(name, used_by(request)):
                raise NotAcceptableHere(TENANTS, f"spec.{name}")
        attributes["project_id"] = self.choose_project(attributes.get("project_id"))
        return self.created(create_profile(**attributes))

    def partial_update(self, request: Request, identifier: str) -> Response:
        """Change the name or the metadata of a profile. The spec cannot be changed."""
        patch = read_patch(request.data, internal=("/type", "/spec"), mandatory=("/name",))
        profile = self.get_object(request, identifier)
        before = {name: getattr(profile, name) for name in CHANGEABLE}
        after = apply_patch(before, patch)
        if changes := {name: after.get(name) for name in CHANGEABLE if after.get(name) != before[name]}:
            change_profile(profile, changes)
        return Response(self.show(profile))

    def destroy(self, request: Request, identifier: str) -> Response:
        delete_profile(self.get_object(request, identifier))
        return Response(status=204)
