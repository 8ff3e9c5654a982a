"""Nodes as the API shows them, and the reading half of ``/v1/nodes``."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from cluster.api.profiles import CLUSTERS
from cluster.models import Node
from cluster.operations.lookup import only_one
from watcher_site.api.serializers import ResourceSerializer, links_field
from watcher_site.api.views import ResourceView
from watcher_site.refusals import Invalid


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


class NodeReading(ResourceView):
    """Lists of nodes, and single ones. What is done to them makes action plans, and has its place with these."""

    since = CLUSTERS
    serializer_class = NodeSerializer
    model = Node
    title = "Node"
    policy = "node"
    identifiers = ("uuid", "name")
    arguments_since = {"sort": CLUSTERS}
    filters = ["name", "status", "profile", "cluster"]
    repeatable = frozenset({"status"})
    sort_keys = {
        "uuid": "uuid",
        "name": "name",
        "status": "status",
        "created_at": "created_at",
        "updated_at": "updated_at",
    }

    filter_schemas = {"status": {"enum": Node.Status.values}}

    def lookup(self, identifier: str) -> QuerySet[Any]:
        return only_one(self.get_queryset(), identifier)

    def filter_name(self, queryset: QuerySet[Node], value: str) -> QuerySet[Node]:
        return queryset.filter(name__iexact=value)

    def filter_status(self, queryset: QuerySet[Node], value: list[str]) -> QuerySet[Node]:
        if unknown := [status for status in value if status not in Node.Status.values]:
            raise Invalid(f"Invalid input for field/attribute status. Value: '{unknown[0]}'. There is no such status.")
        return queryset.filter(status__in=value)

    def filter_profile(self, queryset: Any, value: str) -> QuerySet[Node]:
        found: QuerySet[Node] = queryset.of_profile(value)
        return found

    def filter_cluster(self, queryset: Any, value: str) -> QuerySet[Node]:
        found: QuerySet[Node] = queryset.of_cluster(value)
        return found
