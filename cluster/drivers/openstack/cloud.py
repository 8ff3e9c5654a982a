"""The cloud driver for OpenStack: compute nodes, their services, and their power through Ironic or MAAS.

`lifecycle`, `servers` and `volumes` contain the operations on servers and volumes.
"""

from typing import Any

from cluster.drivers import messages
from cluster.drivers.base import (
    Checkpoint,
    CloudFlavor,
    CloudNode,
    ComputeService,
    ComputeServiceNotFound,
    FlavorNotFound,
    NodeNotFound,
    OperationRefused,
    proceed,
)
from cluster.drivers.openstack.access import Access, translated
from cluster.drivers.openstack.ironic import Ironic
from cluster.drivers.openstack.items import host_of
from cluster.drivers.openstack.lifecycle import OpenStackLifecycle
from cluster.drivers.openstack.maas import Maas
from cluster.drivers.openstack.octavia import OctaviaBalancer
from cluster.drivers.openstack.reading import Reader, find_hypervisor, has_power, list_flavors, power_service_of
from cluster.drivers.openstack.trusts import TrustedAccesses, remove_unneeded_trusts
from cluster.drivers.openstack.volumes import OpenStackVolumes
from cluster.models import ComputeNode
from cluster.synchronization.cloud_contents import CloudContents
from cluster.synchronization.mirroring import record_node

RESTING = {"SHUTOFF", "SUSPENDED", "SHELVED", "SHELVED_OFFLOADED"}


class OpenStackCloud(OpenStackLifecycle, OpenStackVolumes):
    """The driver for OpenStack, which requests operations and waits until the cloud has completed them.

    ``operation_owner`` stores the owner of an operation before its request, so that the process that continues the
    work after a crash knows that it may end the operation. All other data is read from the cloud.
    """

    is_mirrored = True

    def __init__(self) -> None:
        self.access = Access()
        self.trusted = TrustedAccesses()

    @property
    def power(self) -> Ironic | Maas:
        """The service that switches the machines of compute nodes."""
        return power_service_of(self.access)

    def make_balancer(self) -> OctaviaBalancer:
        return OctaviaBalancer(self.access)

    def read_contents(self, checkpoint: Checkpoint = proceed) -> CloudContents:
        with translated():
            contents = Reader(self.access, checkpoint).read()
        remove_unneeded_trusts(self.access, contents.servers)
        return contents

    def find_compute_service(self, host: str) -> ComputeService:
        return self.describe_service(self.read_service(host))

    def read_service(self, host: str) -> Any:
        services = self.access.read(lambda cloud: list(cloud.compute.services(binary="nova-compute", host=host)))
        if not services:
            raise ComputeServiceNotFound(host)
        return services[0]

    def describe_service(self, service: Any) -> ComputeService:
        found = ComputeService(
            service.host, service.status, service.state, service.disabled_reason, bool(service.is_forced_down)
        )
        record_node(
            found.host,
            status=found.status,
            state=found.state,
            disabled_reason=found.disabled_reason,
            forced_down=found.forced_down,
        )
        return found

    def enable_compute_service(self, host: str) -> None:
        service = self.read_service(host)
        self.access.send(lambda cloud: cloud.compute.enable_service(service.id), ComputeServiceNotFound(host))
        self.find_compute_service(host)

    def disable_compute_service(self, host: str, reason: str | None = None) -> None:
        service = self.read_service(host)
        self.access.send(
            lambda cloud: cloud.compute.disable_service(service.id, disabled_reason=reason),
            ComputeServiceNotFound(host),
        )
        self.find_compute_service(host)

    def find_flavor(self, flavor: str) -> CloudFlavor:
        flavors = self.access.read(list_flavors)
        by_name = [candidate for candidate in flavors if candidate.name == flavor]
        for candidate in [*(candidate for candidate in flavors if candidate.id == flavor), *by_name]:
            return CloudFlavor(candidate.id, candidate.name)
        raise FlavorNotFound(flavor)

    def find_node(self, node: str) -> CloudNode:
        hypervisor = find_hypervisor(self.access, node)
        host = host_of(hypervisor)
        return CloudNode(hypervisor.id, host, self.power.find_state(hypervisor), self.count_running(host))

    def count_running(self, host: str) -> int:
        servers = self.access.read(lambda cloud: list(cloud.compute.servers(all_projects=True, compute_host=host)))
        return sum(server.task_state is not None or server.status not in RESTING for server in servers)

    def power_on(self, node: str, checkpoint: Checkpoint = proceed) -> None:
        self.switch(find_hypervisor(self.access, node), ComputeNode.PowerState.ON, checkpoint)

    def power_off(self, node: str, checkpoint: Checkpoint = proceed, *, is_fencing: bool = False) -> None:
        hypervisor = find_hypervisor(self.access, node)
        host = host_of(hypervisor)
        if is_fencing:
            if self.find_compute_service(host).state == ComputeNode.State.UP:
                raise OperationRefused(messages.NODE_UP.fill(node=host))
        elif count := self.count_running(host):
            raise OperationRefused(messages.describe_running(host, count))
        self.switch(hypervisor, ComputeNode.PowerState.OFF, checkpoint)

    def switch(self, hypervisor: Any, state: str, checkpoint: Checkpoint) -> None:
        self.power.switch(hypervisor, state, checkpoint)
        record_node(host_of(hypervisor), power_state=state)

    def find_power_state(self, host: str) -> str | None:
        """Return the state that Ironic or MAAS reports for the node with this host name in the site's table."""
        node = ComputeNode.objects.present().filter(hostname=host).first()
        if node is None or not has_power(self.access):
            return None
        hypervisor = find_hypervisor(self.access, str(node.uuid))
        try:
            state = self.power.find_state(hypervisor)
        except NodeNotFound:
            return None
        return state if state in ComputeNode.PowerState.values else None
