"""Servers that are evacuated through Nova, and what is known of the host that they leave."""

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
def left(emulator: Emulator, server: str) -> str:
    """A server on compute1, which is down."""
    service(emulator)["state"] = "down"
    emulator.nova.add_host("compute3")
    write_cached_contents("three hosts, one of which is down")
    return server


def place(emulator: Emulator, server: str) -> tuple[str, str]:
    found = emulator.nova.servers[server]
    return found["OS-EXT-SRV-ATTR:host"], found["status"]


@pytest.mark.parametrize(("destination", "host"), [(None, "compute2"), ("compute3", "compute3")])
def test_a_server_runs_on_another_host(emulator: Emulator, left: str, destination: str | None, host: str) -> None:
    cloud().evacuate(left, destination)
    assert place(emulator, left) == (host, "ACTIVE")
    row = Server.objects.get(uuid=left)
    assert (row.node and row.node.hostname, row.state, row.operation_owner) == (host, "active", "")


def test_a_stopped_server_stays_stopped(emulator: Emulator, left: str) -> None:
    emulator.nova.servers[left] |= {"status": "SHUTOFF", "OS-EXT-STS:vm_state": "stopped"}
    cloud().evacuate(left)
    assert place(emulator, left) == ("compute2", "SHUTOFF")


def test_a_server_on_a_host_that_is_up_is_refused_in_the_words_of_nova(emulator: Emulator, server: str) -> None:
    with pytest.raises(OperationRefused, match="The cloud refused it: Compute service of compute1 is still in use"):
        cloud().evacuate(server)


def test_a_server_that_finds_no_host_says_so(emulator: Emulator, left: str) -> None:
    for found in emulator.nova.services.values():
        found["status"] = "disabled"
    with pytest.raises(NoValidHost, match="There are not enough hosts available"):
        cloud().evacuate(left)
    assert place(emulator, left) == ("compute1", "ERROR")


@pytest.mark.parametrize("how", ["stay", "error"])
def test_an_evacuation_that_fails_has_its_reason(emulator: Emulator, left: str, how: str) -> None:
    emulator.nova.failing = how
    with pytest.raises(OperationFailed, match=f"^Evacuating instance {left} failed: The hypervisor"):
        cloud().evacuate(left)


def test_an_evacuation_that_was_left_behind_is_waited_for_and_not_requested_again(
    emulator: Emulator, left: str
) -> None:
    with acting_for("action", 1), pytest.raises(Killed):
        cloud().evacuate(left, checkpoint=die)
    with acting_for("action", 2):
        found = cloud().reconcile(left)
    assert (found.host, found.status, emulator.count("POST .*/action")) == ("compute2", "ACTIVE", 1)


def test_an_evacuation_whose_answer_is_lost_is_waited_for(emulator: Emulator, left: str) -> None:
    emulator.fail("POST .*/action", 504, after=True)
    cloud().evacuate(left)
    assert (place(emulator, left), emulator.count("POST .*/action")) == (("compute2", "ACTIVE"), 1)


def test_a_service_that_was_forced_down_is_read_so(emulator: Emulator, left: str) -> None:
    service(emulator)["forced_down"] = True
    assert cloud().find_compute_service("compute1").forced_down
    assert ComputeNode.objects.get(hostname="compute1").forced_down
    service(emulator)["forced_down"] = False
    synchronize()
    assert not ComputeNode.objects.get(hostname="compute1").forced_down


def test_a_host_is_off_where_ironic_says_so(emulator: Emulator, left: str) -> None:
    assert cloud().find_power_state("compute1") is None
    emulator.ironic.add(MACHINE, "rack-1", compute_node_id=make_uuid("compute1"))
    assert cloud().find_power_state("compute1") == "on"
    cloud().power_off(make_uuid("compute1"), is_fencing=True)
    assert cloud().find_power_state("compute1") == "off"


def test_without_ironic_nothing_knows_the_power_state(emulator: Emulator, left: str) -> None:
    emulator.offered.remove("baremetal")
    assert cloud().find_power_state("compute1") is None


def test_a_host_that_is_up_is_not_fenced(emulator: Emulator, server: str) -> None:
    emulator.ironic.add(MACHINE, "rack-1", compute_node_id=make_uuid("compute1"))
    with pytest.raises(CloudError, match=r"^Compute node compute1 is up: it is not fenced$"):
        cloud().power_off(make_uuid("compute1"), is_fencing=True)
    assert cloud().find_power_state("compute1") == "on"
