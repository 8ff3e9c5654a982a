"""The filters of the console's lists of the cloud."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from cluster.models import (
    Cluster,
    ComputeNode,
    HostAggregate,
    Node,
    Policy,
    Pool,
    Profile,
    Server,
    Stack,
    StackStatus,
    StorageNode,
    Volume,
)
from watcher_site.console.columns import make_choices
from watcher_site.console.lists.filters import NameFilter


class ComputeNodeFilters(django_filters.FilterSet):
    hostname = NameFilter("hostname", label=_("Hostname or UUID"))
    status = django_filters.ChoiceFilter(
        label=_("Status"), choices=make_choices(ComputeNode.Status.values), empty_label=_("any")
    )
    state = django_filters.ChoiceFilter(
        label=_("State"), choices=make_choices(ComputeNode.State.values), empty_label=_("any")
    )
    power_state = django_filters.ChoiceFilter(
        label=_("Power"), choices=make_choices(ComputeNode.PowerState.values), empty_label=_("any")
    )
    zone = django_filters.CharFilter(label=_("Zone"), lookup_expr="icontains")
    aggregate = django_filters.CharFilter(label=_("Aggregate"), method="in_aggregate")

    class Meta:
        model = ComputeNode
        fields: list[str] = []

    def in_aggregate(self, nodes: QuerySet[ComputeNode], _: str, name: str) -> QuerySet[ComputeNode]:
        return nodes.filter(aggregates__in=HostAggregate.objects.present().filter(name__icontains=name)).distinct()


class ServerFilters(django_filters.FilterSet):
    name = NameFilter()
    state = django_filters.ChoiceFilter(
        label=_("State"), choices=make_choices(Server.State.values), empty_label=_("any")
    )
    node: Any = NameFilter("node__hostname", label=_("Node"))

    class Meta:
        model = Server
        fields: list[str] = []


class PoolFilters(django_filters.FilterSet):
    name = NameFilter()
    zone = django_filters.CharFilter(label=_("Zone"), field_name="storage_node__zone", lookup_expr="icontains")
    state = django_filters.ChoiceFilter(
        label=_("State"),
        field_name="storage_node__state",
        choices=make_choices(StorageNode.State.values),
        empty_label=_("any"),
    )

    class Meta:
        model = Pool
        fields: list[str] = []


class VolumeFilters(django_filters.FilterSet):
    name = NameFilter()
    status = django_filters.ChoiceFilter(
        label=_("Status"), choices=make_choices(Volume.Status.values), empty_label=_("any")
    )
    pool = NameFilter("pool__name", label=_("Pool"))
    volume_type = django_filters.CharFilter(label=_("Type"), field_name="volume_type__name", lookup_expr="icontains")

    class Meta:
        model = Volume
        fields: list[str] = []


class NodeFilters(django_filters.FilterSet):
    name = NameFilter()
    status = django_filters.ChoiceFilter(
        label=_("Status"), choices=make_choices(Node.Status.values), empty_label=_("any")
    )
    profile = NameFilter("profile__name", label=_("Profile"))
    cluster = NameFilter("cluster__name", label=_("Cluster"))

    class Meta:
        model = Node
        fields: list[str] = []


class ClusterFilters(django_filters.FilterSet):
    name = NameFilter()
    status = django_filters.ChoiceFilter(
        label=_("Status"), choices=make_choices(Cluster.Status.values), empty_label=_("any")
    )
    profile = NameFilter("profile__name", label=_("Profile"))
    project_id = django_filters.CharFilter(label=_("Project"))

    class Meta:
        model = Cluster
        fields: list[str] = []


# The console does not list deleted stacks.
STACK_STATUSES = [status for status in StackStatus.values if status != StackStatus.DELETE_COMPLETE]


class StackFilters(django_filters.FilterSet):
    name = NameFilter()
    status = django_filters.ChoiceFilter(label=_("Status"), choices=make_choices(STACK_STATUSES), empty_label=_("any"))
    project_id = django_filters.CharFilter(label=_("Project"))

    class Meta:
        model = Stack
        fields: list[str] = []


class PolicyFilters(django_filters.FilterSet):
    name = NameFilter()
    type = django_filters.CharFilter(label=_("Type"), lookup_expr="icontains")

    class Meta:
        model = Policy
        fields: list[str] = []


class ProfileFilters(django_filters.FilterSet):
    name = NameFilter()

    class Meta:
        model = Profile
        fields: list[str] = []
