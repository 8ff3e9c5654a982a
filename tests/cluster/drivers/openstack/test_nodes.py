"""Actions on compute services and nodes of an OpenStack cloud."""

import pytest

from cluster.drivers.base import CloudError, ComputeServiceNotFound, NodeNotFound, OperationFailed, cloud
from cluster.models import ComputeNode
from tests.cluster.drivers.openstack.cached_contents import write_cached_contents
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.server import Emulator

pytestmark = pytest.mark.django_db
MACHINE = "31111111-1111-1111-1111-111111111111"


@pytest.fixture
def node(emulator: Emulator) -> str:
    """The UUID of a compute node with a machine in Ironic."""
    key = make_uuid("compute1")
    emulator.ironic.add(MACHINE, "rack-1", compute_node_id=key)
    write_cached_contents("two hosts, one in Ironic")
    return key


def service(emulator: Emulator) -> tuple[str, str | None]:
    found = emulator.nova.services[make_uuid("service of compute1")]
    return found["status"], found["disabled_reason"]


def row() -> ComputeNode:
    found: ComputeNode = ComputeNode.objects.get(hostname="compute1")
    return found


def test_compute_service_is_found_with_its_state(emulator: Emulator, node: str) -> None:
    found = cloud().find_compute_service("compute1")
    assert (found.host, found.status, found.state, found.disabled_reason) == ("compute1", "enabled", "up", None)


def test_compute_service_of_an_unknown_host_is_not_found(emulator: Emulator, node: str) -> None:
    with pytest.raises(ComputeServiceNotFound):
        cloud().find_compute_service("nowhere")


def test_compute_service_is_disabled_with_the_reason(emulator: Emulator, node: str) -> None:
    cloud().disable_compute_service("compute1", "watcher_maintaining")
    assert service(emulator) == ("disabled", "watcher_maintaining")
    assert (row().status, row().disabled_reason) == ("disabled", "watcher_maintaining")


def test_compute_service_is_disabled_without_a_reason(emulator: Emulator, node: str) -> None:
    cloud().disable_compute_service("compute1")
    assert service(emulator) == ("disabled", None)


def test_compute_service_is_enabled(emulator: Emulator, node: str) -> None:
    cloud().disable_compute_service("compute1", "watcher_maintaining")
    cloud().enable_compute_service("compute1")
    assert service(emulator) == ("enabled", None)
    assert (row().status, row().disabled_reason) == ("enabled", None)


def test_compute_service_deleted_before_the_update_is_not_found(emulator: Emulator, node: str) -> None:
    emulator.fail("PUT .*/os-services", 404)
    with pytest.raises(ComputeServiceNotFound):
        cloud().enable_compute_service("compute1")


def test_node_is_found_with_its_power_state_and_running_servers(emulator: Emulator, node: str) -> None:
    emulator.nova.add_server("web", "compute1")
    emulator.nova.add_server("resting", "compute1", "SHUTOFF")
    emulator.nova.add_server("elsewhere", "compute2")
    found = cloud().find_node(node)
    assert (found.uuid, found.hostname, found.power_state, found.running_servers) == (node, "compute1", "on", 1)


def test_node_unknown_to_nova_is_not_found(emulator: Emulator, node: str) -> None:
    with pytest.raises(NodeNotFound):
        cloud().find_node(MACHINE)


def test_node_unknown_to_ironic_is_not_found(emulator: Emulator, node: str) -> None:
    with pytest.raises(NodeNotFound, match=r"compute2\.example\.org in Ironic not found"):
        cloud().find_node(make_uuid("compute2"))


def test_cloud_without_ironic_is_reported(emulator: Emulator) -> None:
    emulator.offered.remove("baremetal")
    with pytest.raises(CloudError, match="The cloud has no Ironic: its catalog has no endpoint of type baremetal"):
        cloud().find_node(make_uuid("compute1"))


def test_node_is_powered_off(emulator: Emulator, node: str) -> None:
    cloud().power_off(node)
    assert (emulator.ironic.nodes[MACHINE]["power_state"], row().power_state) == ("power off", "off")


def test_node_is_powered_on(emulator: Emulator, node: str) -> None:
    cloud().power_off(node)
    cloud().power_on(node)
    assert (emulator.ironic.nodes[MACHINE]["power_state"], row().power_state) == ("power on", "on")


def test_node_with_running_servers_is_not_powered_off(emulator: Emulator, node: str) -> None:
    emulator.nova.add_server("web", "compute1")
    with pytest.raises(CloudError, match="Compute node compute1 has 1 running server"):
        cloud().power_off(node)


def test_failed_power_change_has_the_reason_of_ironic(emulator: Emulator, node: str) -> None:
    emulator.ironic.nodes[MACHINE]["last_error"] = "The BMC does not answer."
    emulator.ironic.ignores_power_changes = True
    with pytest.raises(OperationFailed) as caught:
        cloud().power_off(node)
    assert str(caught.value) == "Compute node compute1 did not go off: The BMC does not answer."


def test_refusal_has_the_message_of_ironic(emulator: Emulator, node: str) -> None:
    emulator.fail("PUT .*/states/power", 400, message="The node is in maintenance")
    with pytest.raises(CloudError, match="The cloud refused it: The node is in maintenance"):
        cloud().power_off(node)
