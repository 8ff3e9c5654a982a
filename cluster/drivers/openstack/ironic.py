"""Power control of compute nodes through Ironic."""

from collections.abc import Iterable
from typing import Any

from cluster.drivers import openstack_messages as messages
from cluster.drivers.base import Checkpoint, NodeNotFound, OperationFailed
from cluster.drivers.openstack.access import Access
from cluster.drivers.openstack.items import POWER_STATES, host_of, machine_of
from cluster.drivers.openstack.operations import wait_until

SERVICE = ("baremetal", "Ironic")
TARGETS = {state: target for target, state in POWER_STATES.items()}


class Ironic:
    """The power service of clouds with Ironic."""

    name = SERVICE[1]

    def __init__(self, access: Access) -> None:
        self.access = access

    def read_machines(self) -> list[Any]:
        """Return all nodes of Ironic. Raises: `CloudError`."""
        self.access.require(*SERVICE)
        return self.access.read(lambda cloud: list(cloud.baremetal.nodes(details=True)))

    def find_known_state(self, hypervisor: Any, machines: Iterable[Any]) -> str | None:
        """Return the state of a hypervisor's machine among these, or None if it is unknown."""
        machine = machine_of(hypervisor, machines)
        return POWER_STATES.get(machine.power_state) if machine else None

    def find_state(self, hypervisor: Any) -> str:
        machine = self.find_machine(hypervisor)
        return POWER_STATES.get(machine.power_state, str(machine.power_state))

    def find_machine(self, hypervisor: Any) -> Any:
        """Return Ironic's node of a hypervisor. Raises: `NodeNotFound`, or `CloudError` if there is no Ironic."""
        machine = machine_of(hypervisor, self.read_machines())
        if machine is None:
            raise NodeNotFound(f"{hypervisor.name} in Ironic")
        return machine

    def switch(self, hypervisor: Any, state: str, checkpoint: Checkpoint) -> None:
        """Switch a machine on or off, and wait for the end.

        Raises:
            OperationFailed: the machine did not reach the state.
        """
        machine, host = self.find_machine(hypervisor), host_of(hypervisor)
        self.access.send(lambda cloud: cloud.baremetal.set_node_power_state(machine.id, TARGETS[state]))
        details = wait_until(
            lambda: self.access.send(lambda cloud: cloud.baremetal.get_node(machine.id)),
            lambda node: node.target_power_state is None,
            messages.SWITCHING.fill(node=host, power=state),
            checkpoint,
        )
        if POWER_STATES.get(details.power_state) != state:
            reason = details.last_error or details.power_state
            raise OperationFailed(messages.NOT_SWITCHED.fill(node=host, power=state, reason=reason))
