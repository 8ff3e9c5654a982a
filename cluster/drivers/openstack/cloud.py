"""The OpenStack cloud as `Cloud`: compute nodes, switched through Ironic, and their services.

Servers and volumes are in the modules beside.
"""

from typing import Any

from django.template.defaultfilters import pluralize

from cluster.drivers.base import (
    Checkpoint,
    CloudFlavor,
    CloudNode,
    ComputeService,
    ComputeServiceNotFound,
    FlavorNotFound,
    NodeNotFound,
    OperationFailed,
    OperationRefused,
    proceed,
)
from cluster.drivers.openstack.access import Access, translated
from cluster.drivers.openstack.items import POWER_STATES, host_of, machine_of
from cluster.drivers.openstack.lifecycle import OpenStackLifecycle
from cluster.drivers.openstack.octavia import OctaviaBalancer
from cluster.drivers.openstack.operations import wait_until
from cluster.drivers.openstack.reading import Reader, find_hypervisor, list_flavors
from cluster.drivers.openstack.trusts import TrustedAccesses, remove_unneeded_trusts
from cluster.drivers.openstack.volumes import OpenStackVolumes
from cluster.models import ComputeNode
from cluster.synchronization.cloud_contents import CloudContents
from cluster.synchronization.mirroring import record_node

SERVICE = ("baremetal", "Ironic")
TARGETS = {state: target for target, state in POWER_STATES.items()}
RESTING = {"SHUTOFF", "SUSPENDED", "SHELVED", "SHELVED_OFFLOADED"}


class OpenStackCloud(OpenStackLifecycle, OpenStackVolumes):
    """The driver for OpenStack: it begins each operation and waits, and the cloud goes on without this process.

    The owner of an operation is stored beforehand (``operation_owner``), so that the process which continues the work
    after a crash knows that it may end the operation. All other data is read from the cloud.
    """

    is_mirrored = True

    def __init__(self) -> None:
        self.access = Access()
        self.trusted = TrustedAccesses()

    def make_balancer(self) -> OctaviaBalancer:
        return OctaviaBalancer(self.access)

    def read_contents(self, checkpoint: Checkpoint = proceed) -> CloudContents:
        with translated():
            contents = Reader(self.access, checkpoint).read()
        remove_unneeded_trusts(self.access)
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
        self.access.ask(lambda cloud: cloud.compute.enable_service(service.id), ComputeServiceNotFound(host))
        self.find_compute_service(host)

    def disable_compute_service(self, host: str, reason: str | None = None) -> None:
        service = self.read_service(host)
        self.access.ask(
            lambda cloud: cloud.compute.disable_service(service.id, disabled_reason=reason),
            ComputeServiceNotFound(host),
        )
        self.find_compute_service(host)

    def find_flavor(self, flavor: str) -> CloudFlavor:
        flavors = self.access.read(list_flavors)
        by_name = [found for found in flavors if found.name == flavor]
        for found in [*(found for found in flavors if found.id == flavor), *by_name]:
            return CloudFlavor(found.id, found.name)
        raise FlavorNotFound(flavor)

    def find_node(self, node: str) -> CloudNode:
        hypervisor = find_hypervisor(self.access, node)
        host = host_of(hypervisor)
        machine = find_machine(self.access, hypervisor)
        state = POWER_STATES.get(machine.power_state, str(machine.power_state))
        return CloudNode(hypervisor.id, host, state, self.count_running(host))

    def count_running(self, host: str) -> int:
        servers = self.access.read(lambda cloud: list(cloud.compute.servers(all_projects=True, compute_host=host)))
        return sum(server.task_state is not None or server.status not in RESTING for server in servers)

    def power_on(self, node: str, checkpoint: Checkpoint = proceed) -> None:
        hypervisor = find_hypervisor(self.access, node)
        switch(self.access, hypervisor, host_of(hypervisor), ComputeNode.PowerState.ON, checkpoint)

    def power_off(self, node: str, checkpoint: Checkpoint = proceed, *, is_fencing: bool = False) -> None:
        hypervisor = find_hypervisor(self.access, node)
        host = host_of(hypervisor)
        if is_fencing:
            if self.find_compute_service(host).state == ComputeNode.State.UP:
                raise OperationRefused(f"Compute node {host} is up: it is not fenced")
        elif count := self.count_running(host):
            raise OperationRefused(f"Compute node {host} has {count} running server{pluralize(count)}")
        switch(self.access, hypervisor, host, ComputeNode.PowerState.OFF, checkpoint)

    def find_power_state(self, host: str) -> str | None:
        """Return what Ironic says; the site's table knows the hypervisor of the host."""
        node = ComputeNode.objects.present().filter(hostname=host).first()
        if node is None or not self.access.has(SERVICE[0]):
            return None
        machines = self.access.read(lambda cloud: list(cloud.baremetal.nodes(details=True)))
        machine = machine_of(find_hypervisor(self.access, str(node.uuid)), machines)
        return POWER_STATES.get(machine.power_state) if machine else None


def find_machine(access: Access, hypervisor: Any) -> Any:
    """Raises: `NodeNotFound` where Ironic has none of it, `CloudError` where there is no Ironic."""
    access.require(*SERVICE)
    machines = access.read(lambda cloud: list(cloud.baremetal.nodes(details=True)))
    machine = machine_of(hypervisor, machines)
    if machine is None:
        raise NodeNotFound(f"{hypervisor.name} in Ironic")
    return machine


def switch(access: Access, hypervisor: Any, host: str, state: str, checkpoint: Checkpoint) -> None:
    """Switch a machine on or off, and wait until it is.

    Raises:
        OperationFailed: it did not get there.
    """
    machine = find_machine(access, hypervisor)
    access.ask(lambda cloud: cloud.baremetal.set_node_power_state(machine.id, TARGETS[state]))
    found = wait_until(
        lambda: access.ask(lambda cloud: cloud.baremetal.get_node(machine.id)),
        lambda node: node.target_power_state is None,
        f"Switching compute node {host} {state}",
        checkpoint,
    )
    if POWER_STATES.get(found.power_state) != state:
        raise OperationFailed(f"Compute node {host} did not go {state}: {found.last_error or found.power_state}")
    record_node(host, power_state=state)
