"""Switching the machines under compute nodes, through Ironic."""

from collections.abc import Iterable
from typing import Any

from cluster.drivers.base import Checkpoint, NodeNotFound, OperationFailed
from cluster.drivers.openstack.access import Access
from cluster.drivers.openstack.operations import wait_until
from cluster.models import ComputeNode
from cluster.synchronization.mirroring import record_node

ON, OFF = ComputeNode.PowerState.ON, ComputeNode.PowerState.OFF
POWER_STATES = {"power on": str(ON), "power off": str(OFF)}
TARGETS = {state: target for target, state in POWER_STATES.items()}
SERVICE = ("baremetal", "Ironic")


def machine_of(hypervisor: Any, machines: Iterable[Any]) -> Any:
    """Return Ironic's node of a hypervisor: that whose ``extra.compute_node_id`` names it, else that of its name."""
    names = {hypervisor.name, (hypervisor.service_details or {}).get("host")}
    machines = list(machines)
    named = (machine for machine in machines if (machine.extra or {}).get("compute_node_id") == hypervisor.id)
    return next(named, None) or next((machine for machine in machines if machine.name in names), None)


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
