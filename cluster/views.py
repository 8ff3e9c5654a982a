"""The console's pages of the cloud."""

from typing import Any

from django.db.models import Prefetch, Q, QuerySet
from django_tables2 import RequestConfig

from cluster.filters import ComputeNodeFilters, PoolFilters, ServerFilters, VolumeFilters
from cluster.marks import Mark, find_mark
from cluster.models import ComputeNode, HostAggregate, Pool, Server, Volume, VolumeAttachment
from cluster.tables import ComputeNodeTable, PoolTable, ServerTable, VolumeTable, gigabytes
from watcher_site.pages import ListPage, RecordPage
from watcher_site.refusals import Invalid

AGGREGATES = Prefetch("aggregates", HostAggregate.objects.present())


class InfrastructureList(ListPage):
    """A list of what the cloud consists of, with the way to the others."""

    template_name = "cluster/infrastructure_list.html"


class ComputeNodeList(InfrastructureList):
    model = ComputeNode
    permission_required = "cluster.view_computenode"
    table_class = ComputeNodeTable
    filterset_class = ComputeNodeFilters
    heading = "Nodes"
    guidance = "The cloud is empty. Fill it with manage.py load_topology FILE."

    def get_queryset(self) -> QuerySet[ComputeNode]:
        return ComputeNode.objects.present().with_use().prefetch_related(AGGREGATES)


class ComputeNodePage(RecordPage):
    """One node, its capacity, and the servers on it or on their way to it."""

    model = ComputeNode
    permission_required = "cluster.view_computenode"

    def get_queryset(self) -> QuerySet[ComputeNode]:
        return super().get_queryset().with_use().prefetch_related(AGGREGATES)

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
    template_name = "cluster/server_list.html"
    heading = "Servers"
    guidance = "The cloud has no servers. Fill it with manage.py load_topology FILE."

    def get_queryset(self) -> QuerySet[Server]:
        return Server.objects.present().select_related("node", "destination")


class ServerPage(RecordPage):
    model = Server
    permission_required = "cluster.view_server"

    def get_queryset(self) -> QuerySet[Server]:
        return super().get_queryset().select_related("node", "destination", "new_flavor")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        attached = volumes_in_full().filter(attachments__server=self.object, attachments__deleted_at=None)
        table = VolumeTable(attached, exclude=("servers",), orderable=False)
        return super().get_context_data(table=table, mark=mark_of(self.object), **context)


def mark_of(server: Server) -> Mark | None:
    """Return the mark on the health of a server, or None if the row that would store it cannot be identified."""
    try:
        return find_mark(server)
    except Invalid:
        return None


def volumes_in_full() -> QuerySet[Volume]:
    attachments = VolumeAttachment.objects.present().filter(server__deleted_at=None).select_related("server")
    volumes = Volume.objects.present().select_related("pool", "destination", "volume_type")
    return volumes.prefetch_related(Prefetch("attachments", attachments))


class PoolList(InfrastructureList):
    model = Pool
    permission_required = "cluster.view_pool"
    table_class = PoolTable
    filterset_class = PoolFilters
    heading = "Pools"
    guidance = "The cloud has no storage. Fill it with manage.py load_topology FILE."

    def get_queryset(self) -> QuerySet[Pool]:
        return Pool.objects.present().select_related("storage_node")


class VolumeList(InfrastructureList):
    model = Volume
    permission_required = "cluster.view_volume"
    table_class = VolumeTable
    filterset_class = VolumeFilters
    heading = "Volumes"
    guidance = "The cloud has no volumes. Fill it with manage.py load_topology FILE."

    def get_queryset(self) -> QuerySet[Volume]:
        return volumes_in_full()
