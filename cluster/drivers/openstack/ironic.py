"""Ironic: the machines under compute nodes."""

from collections.abc import Iterable
from typing import Any

from cluster.drivers.base import Checkpoint, NodeNotFound, OperationFailed
from cluster.drivers.openstack.access import Access
from cluster.drivers.openstack.items import POWER_STATES, host_of, machine_of
from cluster.drivers.openstack.operations import wait_until

SERVICE = ("baremetal", "Ironic")
TARGETS = {state: target for target, state in POWER_STATES.items()}


class Ironic:
    """The machines of Ironic."""

    name = SERVICE[1]

    def __init__(self, access: Access) -> None:
        self.access = access

    def read_machines(self) -> list[Any]:
        """Raises: `CloudError` if there is no Ironic."""
        self.access.require(*SERVICE)
        return self.access.read(lambda cloud: list(cloud.baremetal.nodes(details=True)))

    def choose_state(self, hypervisor: Any, machines: Iterable[Any]) -> str | None:
        """Return the state of a hypervisor's machine, or None if Ironic does not know it."""
        machine = machine_of(hypervisor, machines)
        return POWER_STATES.get(machine.power_state) if machine else None

    def find_state(self, hypervisor: Any) -> str:
        machine = self.find_machine(hypervisor)
        return POWER_STATES.get(machine.power_state, str(machine.power_state))

    def find_machine(self, hypervisor: Any) -> Any:
        """Raises: `NodeNotFound` where Ironic has none of it, `CloudError` where there is no Ironic."""
        machine = machine_of(hypervisor, self.read_machines())
        if machine is None:
            raise NodeNotFound(f"{hypervisor.name} in Ironic")
        return machine

    def switch(self, hypervisor: Any, state: str, checkpoint: Checkpoint) -> None:
        """Switch a machine on or off, and wait until it is.

        Raises:
            OperationFailed: it did not get there.
        """
        machine, host = self.find_machine(hypervisor), host_of(hypervisor)
        self.access.ask(lambda cloud: cloud.baremetal.set_node_power_state(machine.id, TARGETS[state]))
        found = wait_until(
            lambda: self.access.ask(lambda cloud: cloud.baremetal.get_node(machine.id)),
            lambda node: node.target_power_state is None,
            f"Switching compute node {host} {state}",
            checkpoint,
        )
        if POWER_STATES.get(found.power_state) != state:
            raise OperationFailed(f"Compute node {host} did not go {state}: {found.last_error or found.power_state}")
