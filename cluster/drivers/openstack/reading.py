"""The reading of all objects of the cloud: one request for each page of a list, and one for each inventory."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog
from django.conf import settings
from openstack.compute.v2.hypervisor import Hypervisor

from cluster.drivers import openstack_messages as messages
from cluster.drivers.base import Checkpoint, CloudUnavailable, NodeNotFound, OperationRefused
from cluster.drivers.openstack.access import Access, CloudRequest, ListChanged
from cluster.drivers.openstack.ironic import SERVICE, Ironic
from cluster.drivers.openstack.items import (
    aggregate_item,
    attachment_items,
    flavor_item,
    has_no_host,
    host_of,
    keeps_owner,
    node_item,
    pool_item,
    server_item,
    storage_node_item,
    type_item,
    volume_item,
)
from cluster.drivers.openstack.maas import Maas
from cluster.models import Server, Trust
from cluster.synchronization.cloud_contents import CloudContents, Item, StorageContents

log = structlog.get_logger(__name__)
# The oldest microversion with UUIDs; from 2.88, hypervisors do not report their capacity.
WITH_CAPACITY = "2.53"
BARE_METAL = "ironic"


class Reader:
    """One reading. ``checkpoint`` is called for each object, and may end the reading by an exception."""

    def __init__(self, access: Access, checkpoint: Checkpoint) -> None:
        self.access, self.checkpoint = access, checkpoint
        self.remarks: list[str] = []

    def read(self) -> CloudContents:
        nodes = self.read_nodes()
        servers = self.read_list(lambda cloud: cloud.compute.servers(all_projects=True))
        aggregates = self.read_list(lambda cloud: cloud.compute.aggregates())
        project, user = self.access.project, self.access.user
        given_up = {str(key) for key in Server.objects.present().given_up().values_list("uuid", flat=True)}
        trusts = set(Trust.objects.valid().values_list("project_id", "user_id"))
        pending = {
            server.id
            for server in servers
            if has_no_host(server)
            and keeps_owner(server, project, user, lambda one: (one.project_id, one.user_id) in trusts)
        } - given_up
        return CloudContents(
            project=project,
            user=user,
            compute_nodes=nodes,
            host_aggregates=[aggregate_item(found) for found in aggregates],
            flavors=[flavor_item(found) for found in self.read_list(list_flavors)],
            servers=[server_item(server, server.id in pending) for server in servers],
            storage=self.read_storage(),
            remarks=self.remarks,
        )

    def read_list(self, request: CloudRequest[Any]) -> list[Any]:
        """Return a complete list. If a page fails, read the whole list again.

        Cinder returns 404 if a marker was deleted. The reading fails after `settings.OPENSTACK_ATTEMPTS`.
        """

        def collect(cloud: Any) -> list[Any]:
            items = []
            self.checkpoint()
            for item in request(cloud):
                items.append(item)
                self.checkpoint()
            return items

        return self.access.read(collect, ListChanged(messages.LIST_CHANGED.text))

    def read_nodes(self) -> list[Item]:
        services = self.read_list(lambda cloud: cloud.compute.services(binary="nova-compute"))
        zones = {service.host: service for service in services}
        inventories = self.make_inventory_reader()
        power_state = self.make_power_state_reader()
        nodes: dict[str, Item] = {}
        for hypervisor in self.read_list(list_hypervisors):
            host = host_of(hypervisor)
            if hypervisor.hypervisor_type == BARE_METAL:
                continue
            if host in nodes:
                self.remarks.append(f"Host {host} has several hypervisors: only the first is looked at.")
                continue
            nodes[host] = node_item(hypervisor, zones.get(host), inventories(hypervisor), power_state(hypervisor))
        return [*nodes.values()]

    def make_inventory_reader(self) -> Callable[[Any], Mapping[str, Any]]:
        """Return a function that returns the inventories of a hypervisor by resource class."""
        if not self.access.has("placement"):
            self.remarks.append("Placement is not there: reserved amounts and allocation ratios keep their values.")
            return lambda hypervisor: {}
        providers = {found.id for found in self.read_list(lambda cloud: cloud.placement.resource_providers())}

        def read(hypervisor: Any) -> Mapping[str, Any]:
            if hypervisor.id not in providers:
                self.remarks.append(f"Placement has no resource provider of {host_of(hypervisor)}.")
                return {}
            try:
                inventories = self.read_list(
                    lambda cloud: cloud.placement.resource_provider_inventories(hypervisor.id)
                )
            except ListChanged:
                self.remarks.append(f"Placement has no resource provider of {host_of(hypervisor)}.")
                return {}
            return {found.resource_class: found for found in inventories}

        return read

    def make_power_state_reader(self) -> Callable[[Any], str | None]:
        """Return a function that returns the power state of a hypervisor's machine in Ironic or MAAS.

        If MAAS does not respond, power states are unknown, and the reading continues.
        """
        if not has_power(self.access):
            return lambda hypervisor: None
        power = power_service_of(self.access)
        self.checkpoint()
        is_maas = isinstance(power, Maas)
        try:
            machines = (
                power.read_machines() if is_maas else self.read_list(lambda cloud: cloud.baremetal.nodes(details=True))
            )
        except CloudUnavailable as problem:
            if not is_maas:
                raise
            self.remarks.append(f"{problem}. Power states are unknown.")
            return lambda hypervisor: None

        def read(hypervisor: Any) -> str | None:
            try:
                return power.find_known_state(hypervisor, machines)
            except OperationRefused as problem:
                self.remarks.append(f"{problem}.")
                return None

        return read

    def read_storage(self) -> StorageContents | None:
        if not self.access.has("block-storage"):
            self.remarks.append("Cinder is not there: volumes and pools stay as they are.")
            return None
        types = self.read_list(lambda cloud: cloud.block_storage.types())
        pools = self.read_list(lambda cloud: cloud.block_storage.backend_pools())
        services = self.read_list(lambda cloud: cloud.block_storage.services(binary="cinder-volume"))
        volumes = self.read_list(lambda cloud: cloud.block_storage.volumes(all_projects=True))
        snapshots = self.read_list(lambda cloud: cloud.block_storage.snapshots(all_projects=True))
        with_snapshots = {snapshot.volume_id for snapshot in snapshots}
        return StorageContents(
            volume_types=[type_item(kind) for kind in types],
            storage_nodes=[storage_node_item(service, pools, types) for service in services],
            pools=[pool_item(pool, volumes) for pool in pools],
            volumes=[volume_item(volume) | {"has_snapshots": volume.id in with_snapshots} for volume in volumes],
            attachments=[item for volume in volumes for item in attachment_items(volume)],
        )


def list_hypervisors(cloud: Any) -> Iterable[Any]:
    return Hypervisor.list(cloud.compute, base_path="/os-hypervisors/detail", microversion=WITH_CAPACITY)


def list_flavors(cloud: Any) -> list[Any]:
    """Return all flavors, including private ones."""
    return list(cloud.compute.flavors(is_public="None"))


def has_power(access: Access) -> bool:
    """Return whether there is a service that switches the machines of compute nodes."""
    return bool(settings.MAAS_URL) or access.has(SERVICE[0])


def power_service_of(access: Access) -> Ironic | Maas:
    """Return the service that switches the machines of compute nodes: MAAS if its address is set, else Ironic."""
    return Maas() if settings.MAAS_URL else Ironic(access)


def find_hypervisor(access: Access, node: str) -> Any:
    """Return the hypervisor of a compute node. Raises: `NodeNotFound`."""
    return access.read(lambda cloud: cloud.compute.get_hypervisor(node), NodeNotFound(node))
