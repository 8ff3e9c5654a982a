"""``/v1/policies`` and ``/v1/policy_types``."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.api.profiles import CLUSTERS
from cluster.models import Policy
from cluster.models.clusters import NAME_LENGTH
from cluster.operations.policies import change_policy, check_spec, create_policy, delete_policy, find_type
from cluster.policies.base import PolicyType, When
from watcher_site import plugins
from watcher_site.api.bodies import apply_patch, read_body, read_patch
from watcher_site.api.paging import refuse_unknown_arguments
from watcher_site.api.serializers import ResourceSerializer, links_field
from watcher_site.api.versions import Version
from watcher_site.api.views import NamedLookup, ResourceView
from watcher_site.refusals import NotFound


class PolicySerializer(ResourceSerializer):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    type = serializers.CharField(help_text="name of a policy type of /v1/policy_types")
    links = links_field()
    spec = serializers.DictField(help_text="properties as they were sent")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        collection = "policies"
        short = ("uuid", "name", "type", "links")
        json = ("spec",)
        computed = ("links",)


@extend_schema_field({"type": "object", "description": "properties, validated by the schema of the type"})
class PropertiesField(serializers.JSONField):
    """Unvalidated properties; `cluster.operations.policies` checks them with more specific messages."""


class PropertiesSerializer(serializers.Serializer[Any]):
    """The body of a request to validate the properties of a policy."""

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
    spec = serializers.DictField(help_text="the properties, with defaults for omitted ones")


class PolicyTypeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    description = serializers.CharField()
    priority = serializers.IntegerField(help_text="default priority; policies with smaller values are checked first")
    is_single = serializers.BooleanField(help_text="whether a cluster may have only one policy of the type")
    before = serializers.ListField(
        child=serializers.CharField(), help_text="actions before which the policy is checked"
    )
    after = serializers.ListField(child=serializers.CharField(), help_text="actions after which the policy is checked")
    schema = serializers.DictField(help_text="JSON Schema of the properties")


class PolicyTypesSerializer(serializers.Serializer[Any]):
    policy_types = PolicyTypeSerializer(many=True)


class PolicyView(NamedLookup, ResourceView):
    since = CLUSTERS
    serializer_class = PolicySerializer
    model = Policy
    title = "Policy"
    policy = "policy"
    identifiers = ("uuid", "name")
    filters = ["name", "type"]
    sort_keys = {
        "uuid": "uuid",
        "name": "name",
        "type": "type",
        "created_at": "created_at",
        "updated_at": "updated_at",
    }
    bodies = {"create": NewPolicySerializer, "validate": PropertiesSerializer}
    answers = {"validate": (200, CheckedPropertiesSerializer)}
    example_step = {"op": "replace", "path": "/name", "value": "shrink slowly"}

    def filter_name(self, queryset: QuerySet[Policy], value: str) -> QuerySet[Policy]:
        return queryset.filter(name__iexact=value)

    def filter_type(self, queryset: QuerySet[Policy], value: str) -> QuerySet[Policy]:
        return queryset.filter(type=value)

    def create(self, request: Request) -> Response:
        attributes = read_body(request, NewPolicySerializer, PolicySerializer._declared_fields)
        return self.created(create_policy(**attributes))

    def validate(self, request: Request) -> Response:
        """Validate the properties of a policy, and return them with defaults. No policy is created."""
        attributes = read_body(request, PropertiesSerializer)
        spec = check_spec(attributes["type"], attributes.get("spec"))
        return Response({"type": attributes["type"], "spec": find_type(attributes["type"])(spec).spec})

    def partial_update(self, request: Request, identifier: str) -> Response:
        """Change the name of a policy. The properties cannot be changed."""
        patch = read_patch(request.data, internal=("/type", "/spec"), mandatory=("/name",))
        policy = self.get_object(request, identifier)
        after = apply_patch({"name": policy.name}, patch)
        if after["name"] != policy.name:
            change_policy(policy, after)
        return Response(self.show(policy))

    def destroy(self, request: Request, identifier: str) -> Response:
        delete_policy(self.get_object(request, identifier))
        return Response(status=204)


class PolicyTypeView(ResourceView):
    """Policy types, which are plug-ins in the settings, and not rows of a table."""

    since = CLUSTERS
    model = Policy
    title = "PolicyType"
    policy = "policy_type"
    identifiers = ("name",)
    policy_actions = {"list_types": "get_all", "show_type": "get"}
    answers = {"list_types": (200, PolicyTypesSerializer), "show_type": (200, PolicyTypeSerializer)}

    def list_types(self, request: Request) -> Response:
        """List the policy types, with the schemas of their properties."""
        refuse_unknown_arguments(request.query_params, set())
        return Response(
            {
                "policy_types": [
                    describe_policy_type(policy_type) for policy_type in plugins.load("POLICY_TYPES").values()
                ]
            }
        )

    def show_type(self, request: Request, identifier: str) -> Response:
        """Show a policy type."""
        policy_type = plugins.load("POLICY_TYPES").get(identifier)
        if policy_type is None:
            raise NotFound(self.missing(identifier))
        self.check_object_permissions(request, policy_type)
        return Response(describe_policy_type(policy_type))


def describe_policy_type(policy_type: type[PolicyType]) -> dict[str, Any]:
    return {
        "name": policy_type.name,
        "description": policy_type.description,
        "priority": policy_type.priority,
        "is_single": policy_type.is_single,
        "before": sorted(policy_type.targets.get(When.BEFORE, ())),
        "after": sorted(policy_type.targets.get(When.AFTER, ())),
        "schema": policy_type.schema,
    }
