"""The console's pages of what clusters are made of: nodes and profiles."""

from typing import Any

from django.db.models import Count, Q, QuerySet
from django_tables2 import RequestConfig

from cluster.filters import NodeFilters, ProfileFilters
from cluster.member_tables import NodeTable, ProfileTable
from cluster.models import Node, Profile, Server
from watcher_site.pages import ListPage, RecordPage


class MemberList(ListPage):
    """A list of what clusters are made of, with the way to the others."""

    template_name = "cluster/member_list.html"


class NodeList(MemberList):
    model = Node
    permission_required = "cluster.view_node"
    table_class = NodeTable
    filterset_class = NodeFilters
    heading = "Nodes of clusters"
    guidance = "There are no nodes. Clusters have theirs, and the API makes others, from 1.12: POST /v1/nodes."

    def get_table_kwargs(self) -> dict[str, Any]:
        return {"exclude": ("index", "tainted")}

    def get_queryset(self) -> QuerySet[Node]:
        return Node.objects.present().select_related("profile", "cluster")


class NodePage(RecordPage):
    """One node, its profile and its server."""

    model = Node
    permission_required = "cluster.view_node"

    def get_queryset(self) -> QuerySet[Node]:
        return super().get_queryset().select_related("profile", "cluster")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        server = Server.objects.present().filter(uuid=self.object.physical_id).first()
        return super().get_context_data(server=server, **context)


class ProfileList(MemberList):
    model = Profile
    permission_required = "cluster.view_profile"
    table_class = ProfileTable
    filterset_class = ProfileFilters
    heading = "Profiles"
    guidance = "There are no profiles. The API makes them, from 1.12: POST /v1/profiles."

    def get_queryset(self) -> QuerySet[Profile]:
        return Profile.objects.present().annotate(node_count=Count("nodes", filter=Q(nodes__deleted_at=None)))


class ProfilePage(RecordPage):
    """One profile, and the nodes that were made from it."""

    model = Profile
    permission_required = "cluster.view_profile"

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        table = NodeTable(
            Node.objects.present().filter(profile=self.object).select_related("cluster"),
            exclude=("profile", "index", "tainted"),
        )
        configured = RequestConfig(self.request, paginate={"per_page": 50}).configure(table)
        return super().get_context_data(table=configured, **context)
