"""What the console's lists of nodes and servers can be narrowed to."""

import django_filters

from cluster.models import ComputeNode, Server
from watcher_site.filters import words


class ComputeNodeFilters(django_filters.FilterSet):
    hostname = django_filters.CharFilter(label="Hostname", lookup_expr="icontains")
    status = django_filters.ChoiceFilter(choices=words(ComputeNode.Status.values), empty_label="any")
    state = django_filters.ChoiceFilter(choices=words(ComputeNode.State.values), empty_label="any")

    class Meta:
        model = ComputeNode
        fields: list[str] = []


class ServerFilters(django_filters.FilterSet):
    name = django_filters.CharFilter(label="Name", lookup_expr="icontains")
    state = django_filters.ChoiceFilter(choices=words(Server.State.values), empty_label="any")
    node = django_filters.CharFilter(label="Node", field_name="node__hostname", lookup_expr="icontains")

    class Meta:
        model = Server
        fields: list[str] = []
