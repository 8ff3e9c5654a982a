"""The console's pages of the cloud."""

from typing import Any

from django.db.models import Q, QuerySet
from django_tables2 import RequestConfig

from cluster.filters import ComputeNodeFilters, ServerFilters
from cluster.models import ComputeNode, Server
from cluster.tables import ComputeNodeTable, ServerTable, gigabytes
from watcher_site.pages import ListPage, RecordPage


class ComputeNodeList(ListPage):
    model = ComputeNode
    permission_required = "cluster.view_computenode"
    table_class = ComputeNodeTable
    filterset_class = ComputeNodeFilters
    heading = "Nodes"
    guidance = "The cloud is empty. Fill it with manage.py load_topology FILE."

    def get_queryset(self) -> QuerySet[ComputeNode]:
        return ComputeNode.objects.present().with_use()


class ComputeNodePage(RecordPage):
    """One node, its capacity, and the servers on it or on their way to it."""

    model = ComputeNode
    permission_required = "cluster.view_computenode"

    def get_queryset(self) -> QuerySet[ComputeNode]:
        return super().get_queryset().with_use()

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        node = self.object
        here = (
            Server.objects.present().filter(Q(node=node) | Q(destination=node)).select_related("node", "destination")
        )
        return super().get_context_data(
            table=RequestConfig(self.request, paginate={"per_page": 50}).configure(ServerTable(here)),
            capacities=[
                ("vCPU", node.used_vcpus, node.capacity_vcpus),
                ("Memory, GB", gigabytes(node.used_memory), gigabytes(node.capacity_memory)),
                ("Disk, GB", node.used_disk, node.capacity_disk),
            ],
            **context,
        )


class ServerList(ListPage):
    model = Server
    permission_required = "cluster.view_server"
    table_class = ServerTable
    filterset_class = ServerFilters
    heading = "Servers"
    guidance = "The cloud has no servers. Fill it with manage.py load_topology FILE."

    def get_queryset(self) -> QuerySet[Server]:
        return Server.objects.present().select_related("node", "destination")


class ServerPage(RecordPage):
    model = Server
    permission_required = "cluster.view_server"

    def get_queryset(self) -> QuerySet[Server]:
        return super().get_queryset().select_related("node", "destination")
