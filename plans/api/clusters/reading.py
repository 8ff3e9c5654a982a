"""The readable part of ``/v1/clusters``, and of the policies of clusters."""

from collections import defaultdict
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from rest_framework import serializers

from cluster.api.profiles import CLUSTERS
from cluster.models import Cluster, Node, PolicyBinding
from cluster.models.clusters import names_among
from cluster.operations.lookup import only_one
from watcher_site.api.serializers import ResourceSerializer, Row, links_field
from watcher_site.api.views import ResourceView
from watcher_site.refusals import Invalid


class ClusterSerializer(ResourceSerializer):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    profile_uuid = serializers.UUIDField()
    profile_name = serializers.CharField()
    min_size = serializers.IntegerField()
    max_size = serializers.IntegerField(help_text="-1: there is no limit")
    desired_capacity = serializers.IntegerField(help_text="how many nodes are wanted")
    status = serializers.ChoiceField(Cluster.Status.choices)
    links = links_field()
    status_reason = serializers.CharField(allow_null=True)
    timeout = serializers.IntegerField(help_text="of its actions, in seconds; 0: the site's default")
    metadata = serializers.DictField()
    nodes = serializers.ListField(child=serializers.UUIDField(), help_text="its members, in the order of joining")
    policies = serializers.ListField(child=serializers.UUIDField(), help_text="in the order in which they are asked")
    init_at = serializers.DateTimeField(allow_null=True, help_text="when its creation began")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        collection = "clusters"
        short = (
            *("uuid", "name", "profile_uuid", "profile_name", "min_size", "max_size", "desired_capacity"),
            *("status", "links"),
        )
        columns = {"profile_uuid": "profile__uuid", "profile_name": "profile__name"}
        json = ("metadata",)
        computed = ("links", "nodes", "policies")

    @classmethod
    def add_nodes(cls, rows: list[Row]) -> None:
        members = Node.objects.present().order_by("index", "pk")
        add_uuids(rows, "nodes", members, "uuid")

    @classmethod
    def add_policies(cls, rows: list[Row]) -> None:
        bindings = PolicyBinding.objects.present().order_by("priority", "pk")
        add_uuids(rows, "policies", bindings, "policy__uuid")


def add_uuids(rows: list[Row], field: str, related: QuerySet[Any], column: str) -> None:
    """Add to clusters the UUIDs of related objects, in the order of these, in one query."""
    found: dict[UUID, list[UUID]] = defaultdict(list)
    of_these = related.filter(cluster__uuid__in=[row["uuid"] for row in rows])
    for cluster, uuid in of_these.values_list("cluster__uuid", column):
        found[cluster].append(uuid)
    for row in rows:
        row[field] = found[row["uuid"]]


class ClusterReading(ResourceView):
    """Lists of clusters, and single ones. What is done to them makes action plans, and has its place with these."""

    since = CLUSTERS
    serializer_class = ClusterSerializer
    model = Cluster
    title = "Cluster"
    policy = "cluster"
    identifiers = ("uuid", "name")
    arguments_since = {"sort": CLUSTERS}
    filters = ["name", "status", "profile"]
    repeatable = frozenset({"name", "status"})
    sort_keys = {
        "uuid": "uuid",
        "name": "name",
        "status": "status",
        "created_at": "created_at",
        "updated_at": "updated_at",
    }

    filter_schemas = {"status": {"enum": Cluster.Status.values}}

    def lookup(self, identifier: str) -> QuerySet[Any]:
        return only_one(self.get_queryset(), identifier)

    def filter_name(self, queryset: QuerySet[Cluster], value: list[str]) -> QuerySet[Cluster]:
        return queryset.filter(names_among(value))

    def filter_status(self, queryset: QuerySet[Cluster], value: list[str]) -> QuerySet[Cluster]:
        if unknown := [status for status in value if status not in Cluster.Status.values]:
            raise Invalid(f"Invalid input for field/attribute status. Value: '{unknown[0]}'. There is no such status.")
        return queryset.filter(status__in=value)

    def filter_profile(self, queryset: Any, value: str) -> QuerySet[Cluster]:
        found: QuerySet[Cluster] = queryset.of_profile(value)
        return found


class BindingSerializer(ResourceSerializer):
    """The binding of a policy to a cluster."""

    uuid = serializers.UUIDField()
    cluster_uuid = serializers.UUIDField()
    cluster_name = serializers.CharField()
    policy_uuid = serializers.UUIDField()
    policy_name = serializers.CharField()
    policy_type = serializers.CharField()
    priority = serializers.IntegerField(help_text="the smaller, the earlier it is asked")
    enabled = serializers.BooleanField()
    last_op = serializers.DateTimeField(allow_null=True, help_text="when what it is about was last done")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        collection = "cluster_policies"
        columns = {
            "cluster_uuid": "cluster__uuid",
            "cluster_name": "cluster__name",
            "policy_uuid": "policy__uuid",
            "policy_name": "policy__name",
            "policy_type": "policy__type",
        }

    @classmethod
    def add_links(cls, rows: list[Row], host: str) -> None:
        """Add no links: a binding has no address of its own, the cluster and the policy together identify it."""
