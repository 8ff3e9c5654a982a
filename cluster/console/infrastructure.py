"""Console pages of compute nodes, pools and volumes."""

from typing import Any

from django.db.models import Prefetch, Q, QuerySet
from django.utils.translation import gettext_lazy as _
from django_tables2 import RequestConfig

from cluster.console.filters import ComputeNodeFilters, PoolFilters, VolumeFilters
from cluster.console.tables import ComputeNodeTable, HostedServerTable, PoolTable, VolumeTable, convert_to_gigabytes
from cluster.models import ComputeNode, HostAggregate, Pool, Server, Volume, VolumeAttachment
from watcher_site.console.pages import ListPage, RecordPage
from watcher_site.console.paging import OrderedRows

AGGREGATES = Prefetch("aggregates", HostAggregate.objects.present())


class InfrastructureList(ListPage):
    """A list of objects of the cloud, with links to the other lists."""

    template_name = "cluster/infrastructure_list.html"


class ComputeNodeList(InfrastructureList):
    model = ComputeNode
    permission_required = "cluster.view_computenode"
    table_class = ComputeNodeTable
    filterset_class = ComputeNodeFilters
    heading = _("Compute nodes")
    help_page = "concepts#compute-node"
    guidance = _("No compute nodes. Load a topology with manage.py load_topology FILE.")

    def get_queryset(self) -> QuerySet[ComputeNode]:
        return ComputeNode.objects.present().with_use().prefetch_related(AGGREGATES)


class ComputeNodePage(RecordPage):
    """A compute node, its capacity, and the servers on it or migrating to it."""

    model = ComputeNode
    permission_required = "cluster.view_computenode"

    def get_queryset(self) -> QuerySet[ComputeNode]:
        return super().get_queryset().with_use().prefetch_related(AGGREGATES)

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        node = self.object
        here = (
            Server.objects.present().filter(Q(node=node) | Q(destination=node)).select_related("node", "destination")
        )
        table = HostedServerTable(OrderedRows(here))
        return super().get_context_data(
            table=RequestConfig(self.request, paginate={"per_page": 50}).configure(table),
            capacities=[
                (_("vCPU"), node.used_vcpus, node.capacity_vcpus),
                (_("Memory (GB)"), convert_to_gigabytes(node.used_memory), convert_to_gigabytes(node.capacity_memory)),
                (_("Disk (GB)"), node.used_disk, node.capacity_disk),
            ],
            **context,
        )


def volumes_with_relations() -> QuerySet[Volume]:
    attachments = VolumeAttachment.objects.present().filter(server__deleted_at=None).select_related("server")
    volumes = Volume.objects.present().select_related("pool", "destination", "volume_type")
    return volumes.prefetch_related(Prefetch("attachments", attachments))


class PoolList(InfrastructureList):
    model = Pool
    permission_required = "cluster.view_pool"
    table_class = PoolTable
    filterset_class = PoolFilters
    heading = _("Pools")
    help_page = "console#compute-nodes"
    guidance = _("No storage pools. Load a topology with manage.py load_topology FILE.")

    def get_queryset(self) -> QuerySet[Pool]:
        return Pool.objects.present().select_related("storage_node")


class VolumeList(InfrastructureList):
    model = Volume
    permission_required = "cluster.view_volume"
    table_class = VolumeTable
    filterset_class = VolumeFilters
    heading = _("Volumes")
    help_page = "console#compute-nodes"
    guidance = _("No volumes. Load a topology with manage.py load_topology FILE.")

    def get_queryset(self) -> QuerySet[Volume]:
        return volumes_with_relations()
