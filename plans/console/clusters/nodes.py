"""The console's pages of the nodes of clusters."""

from typing import Any

from django.db.models import QuerySet

from cluster.console.filters import NodeFilters
from cluster.console.profiles import MemberList
from cluster.console.tables import NodeTable
from cluster.models import Node, Server
from watcher_site.console.pages import RecordPage


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
