"""Evacuations by Nova, and the power state of the failed host."""

import pytest

from cluster.drivers.base import CloudError, NoValidHost, OperationFailed, OperationRefused, cloud
from cluster.drivers.ownership import acting_for
from cluster.models import ComputeNode, Server
from cluster.operations.synchronization import synchronize
from tests.cluster.drivers.openstack.cached_contents import write_cached_contents
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.server import Emulator

pytestmark = pytest.mark.django_db
MACHINE = "31111111-1111-1111-1111-111111111111"


class Killed(BaseException):
    pass


def die() -> None:
    raise Killed


def service(emulator: Emulator) -> dict[str, object]:
    return emulator.nova.services[make_uuid("service of compute1")]


@pytest.fixture
def server_on_failed_host(emulator: Emulator, server: str) -> str:
    """The UUID of a server on compute1, which is down."""
    service(emulator)["state"] = "down"
    emulator.nova.add_host("compute3")
    write_cached_contents("three hosts, one of which is down")
    return server


def place(emulator: Emulator, server: str) -> tuple[str, str]:
    found = emulator.nova.servers[server]
    return found["OS-EXT-SRV-ATTR:host"], found["status"]


@pytest.mark.parametrize(("destination", "host"), [(None, "compute2"), ("compute3", "compute3")])
def test_evacuated_server_is_active_on_another_host(
    emulator: Emulator, server_on_failed_host: str, destination: str | None, host: str
) -> None:
    cloud().evacuate(server_on_failed_host, destination)
    assert place(emulator, server_on_failed_host) == (host, "ACTIVE")
    row = Server.objects.get(uuid=server_on_failed_host)
    assert (row.node and row.node.hostname, row.state, row.operation_owner) == (host, "active", "")


def test_stopped_server_is_evacuated_and_stays_stopped(emulator: Emulator, server_on_failed_host: str) -> None:
    emulator.nova.servers[server_on_failed_host] |= {"status": "SHUTOFF", "OS-EXT-STS:vm_state": "stopped"}
    cloud().evacuate(server_on_failed_host)
    assert place(emulator, server_on_failed_host) == ("compute2", "SHUTOFF")


def test_evacuation_from_a_host_that_is_up_is_refused_with_the_message_of_nova(
    emulator: Emulator, server: str
) -> None:
    with pytest.raises(OperationRefused, match="The cloud refused it: Compute service of compute1 is still in use"):
        cloud().evacuate(server)


def test_evacuation_without_a_valid_host_raises_no_valid_host(emulator: Emulator, server_on_failed_host: str) -> None:
    for found in emulator.nova.services.values():
        found["status"] = "disabled"
    with pytest.raises(NoValidHost, match="There are not enough hosts available"):
        cloud().evacuate(server_on_failed_host)
    assert place(emulator, server_on_failed_host) == ("compute1", "ERROR")


@pytest.mark.parametrize("how", ["stay", "error"])
def test_failed_evacuation_has_the_reason(emulator: Emulator, server_on_failed_host: str, how: str) -> None:
    emulator.nova.failing = how
    with pytest.raises(OperationFailed, match=f"^Evacuating instance {server_on_failed_host} failed: The hypervisor"):
        cloud().evacuate(server_on_failed_host)


def test_interrupted_evacuation_is_resumed_without_another_request(
    emulator: Emulator, server_on_failed_host: str
) -> None:
    with acting_for("action", 1), pytest.raises(Killed):
        cloud().evacuate(server_on_failed_host, checkpoint=die)
    with acting_for("action", 2):
        found = cloud().reconcile(server_on_failed_host)
    assert (found.host, found.status, emulator.count("POST .*/action")) == ("compute2", "ACTIVE", 1)


def test_evacuation_is_awaited_after_a_lost_response(emulator: Emulator, server_on_failed_host: str) -> None:
    emulator.fail("POST .*/action", 504, after=True)
    cloud().evacuate(server_on_failed_host)
    assert (place(emulator, server_on_failed_host), emulator.count("POST .*/action")) == (("compute2", "ACTIVE"), 1)


def test_forced_down_of_a_service_is_read(emulator: Emulator, server_on_failed_host: str) -> None:
    service(emulator)["forced_down"] = True
    assert cloud().find_compute_service("compute1").forced_down
    assert ComputeNode.objects.get(hostname="compute1").forced_down
    service(emulator)["forced_down"] = False
    synchronize()
    assert not ComputeNode.objects.get(hostname="compute1").forced_down


def test_power_state_of_a_host_is_read_from_ironic(emulator: Emulator, server_on_failed_host: str) -> None:
    assert cloud().find_power_state("compute1") is None
    emulator.ironic.add(MACHINE, "rack-1", compute_node_id=make_uuid("compute1"))
    assert cloud().find_power_state("compute1") == "on"
    cloud().power_off(make_uuid("compute1"), is_fencing=True)
    assert cloud().find_power_state("compute1") == "off"


def test_power_state_is_unknown_without_ironic(emulator: Emulator, server_on_failed_host: str) -> None:
    emulator.offered.remove("baremetal")
    assert cloud().find_power_state("compute1") is None


def test_host_that_is_up_is_not_fenced(emulator: Emulator, server: str) -> None:
    emulator.ironic.add(MACHINE, "rack-1", compute_node_id=make_uuid("compute1"))
    with pytest.raises(CloudError, match=r"^Compute node compute1 is up: it is not fenced$"):
        cloud().power_off(make_uuid("compute1"), is_fencing=True)
    assert cloud().find_power_state("compute1") == "on"
