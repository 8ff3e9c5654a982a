"""Members of pools of Octavia: one per server, also after interruptions and lost responses."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from cluster.drivers.balancing import BalancerPool, BalancingPoolNotFound, MemberDraining, PoolMember, balancer
from cluster.drivers.base import (
    CloudBusy,
    CloudError,
    CloudUnavailable,
    OperationFailed,
    OperationRefused,
    ServerNotFound,
    load_driver,
)
from cluster.models import Draining
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.server import Emulator

pytestmark = pytest.mark.django_db
POOL, LOAD_BALANCER = make_uuid("pool"), make_uuid("load balancer")
POSTED, PUT, DELETED = "POST /load-balancer", "PUT /load-balancer", "DELETE /load-balancer"


class Killed(BaseException):
    pass


@pytest.fixture(autouse=True)
def pool(emulator: Emulator, server: str) -> None:
    """A pool whose load balancer is on the subnet front. The server has addresses on front and back."""
    emulator.octavia.add_pool(POOL, "web", LOAD_BALANCER, "front")
    emulator.neutron.add_subnet("front", "the front")
    emulator.neutron.add_subnet("back", "the back")
    emulator.neutron.add_port(server, back="10.0.2.7", front="10.0.1.7")


def members(emulator: Emulator) -> list[dict[str, Any]]:
    return list(emulator.octavia.members[POOL].values())


def shown(emulator: Emulator, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(member[column] for column in columns) for member in members(emulator)]


def add(server: str, port: int = 80, **options: Any) -> PoolMember:
    return balancer().add_member("web", server, port, **options)


def interrupt(emulator: Emulator, call: Any, *arguments: Any, **options: Any) -> None:
    """Begin an operation as a process that is killed during it."""

    def die() -> None:
        if emulator.octavia.reads_left:
            raise Killed

    with pytest.raises(Killed):
        call(*arguments, **options, checkpoint=die)


# Reading.


@pytest.mark.parametrize("name", ["web", POOL])
def test_pool_is_found_by_name_and_by_uuid(name: str) -> None:
    assert balancer().find_pool(name) == BalancerPool(POOL, "web", LOAD_BALANCER)


def test_unknown_pool_raises_pool_not_found(server: str) -> None:
    for call in (lambda: balancer().find_pool("none"), lambda: balancer().add_member("none", server, 80)):
        with pytest.raises(BalancingPoolNotFound, match=r"^Load-balancer pool none not found$"):
            call()


def test_cloud_without_octavia_is_reported(emulator: Emulator) -> None:
    emulator.offered.remove("load-balancer")
    load_driver.cache_clear()
    with pytest.raises(CloudError, match="The cloud has no Octavia"):
        balancer().find_pool("web")


def test_members_of_servers_and_other_members_are_returned(emulator: Emulator, server: str) -> None:
    emulator.page_size = 1
    emulator.octavia.add_member(POOL, name="by hand", address="10.0.1.9", protocol_port=8080, weight=3)
    add(server)
    assert balancer().members("web") == [
        PoolMember(None, 8080, 3, None, "10.0.1.9"),
        PoolMember(server, 80, 1, None, "10.0.1.7"),
    ]


# Adding.


def test_server_is_added_with_its_address_on_the_subnet_of_the_load_balancer(emulator: Emulator, server: str) -> None:
    assert add(server, weight=5) == PoolMember(server, 80, 5, None, "10.0.1.7")
    columns = ("name", "address", "subnet_id", "protocol_port", "weight", "provisioning_status")
    assert shown(emulator, *columns) == [(server, "10.0.1.7", "front", 80, 5, "ACTIVE")]
    assert emulator.octavia.balancers[LOAD_BALANCER]["provisioning_status"] == "ACTIVE"


@pytest.mark.parametrize("subnet", ["back", "the back"])
def test_server_is_added_with_its_address_on_the_requested_subnet(
    emulator: Emulator, server: str, subnet: str
) -> None:
    add(server, subnet=subnet)
    assert shown(emulator, "address", "subnet_id") == [("10.0.2.7", "back")]


def test_server_without_an_address_on_the_subnet_is_refused(emulator: Emulator) -> None:
    other = emulator.nova.add_server("other", "compute1")
    emulator.neutron.add_port(other, back="10.0.2.8")
    with pytest.raises(OperationRefused, match=f"^Instance {other} has no address on subnet front$"):
        add(other)


def test_unknown_subnet_is_refused(server: str) -> None:
    with pytest.raises(OperationRefused, match=r"^Subnet none not found$"):
        add(server, subnet="none")


@pytest.mark.parametrize("missing", [make_uuid("missing"), "no UUID"])
def test_unknown_server_is_not_added(emulator: Emulator, missing: str) -> None:
    with pytest.raises(ServerNotFound):
        add(missing)
    assert members(emulator) == []


def test_server_added_twice_is_one_member(emulator: Emulator, server: str) -> None:
    assert add(server) == add(server)
    assert (len(members(emulator)), emulator.count(POSTED), emulator.count(PUT)) == (1, 1, 0)


def test_repeated_addition_updates_the_weight(emulator: Emulator, server: str) -> None:
    add(server)
    assert add(server, weight=7).weight == 7
    assert shown(emulator, "weight", "provisioning_status") == [(7, "ACTIVE")]


def test_port_of_a_member_cannot_be_changed(emulator: Emulator, server: str) -> None:
    add(server)
    with pytest.raises(OperationRefused, match=f"^Instance {server} is in pool web with port 80 already$"):
        add(server, port=443)
    assert shown(emulator, "protocol_port") == [(80,)]


def test_interrupted_addition_is_resumed_without_another_request(emulator: Emulator, server: str) -> None:
    interrupt(emulator, add, server)
    assert add(server).server == server
    assert (shown(emulator, "provisioning_status"), emulator.count(POSTED)) == ([("ACTIVE",)], 1)


def test_addition_is_awaited_after_a_lost_response(emulator: Emulator, server: str) -> None:
    emulator.fail(POSTED, 504, after=True)
    add(server)
    assert (shown(emulator, "provisioning_status"), emulator.count(POSTED)) == ([("ACTIVE",)], 1)


def test_addition_refused_as_unavailable_is_reported(emulator: Emulator, server: str) -> None:
    emulator.fail(POSTED, 503)
    with pytest.raises(CloudUnavailable):
        add(server)
    assert members(emulator) == []


def test_concurrent_addition_by_another_process_creates_one_member(emulator: Emulator, server: str) -> None:
    emulator.fail(POSTED, 409, after=True)
    assert add(server).server == server
    assert len(members(emulator)) == 1


def test_load_balancer_with_a_pending_update_is_busy(emulator: Emulator, server: str) -> None:
    emulator.octavia.balancers[LOAD_BALANCER]["provisioning_status"] = "PENDING_UPDATE"
    with pytest.raises(CloudBusy, match="is immutable and cannot be updated"):
        add(server)


def test_load_balancer_in_error_is_refused_permanently(emulator: Emulator, server: str) -> None:
    emulator.octavia.balancers[LOAD_BALANCER]["provisioning_status"] = "ERROR"
    with pytest.raises(OperationRefused, match=r"^Load balancer lb-1 is in provisioning status ERROR$") as caught:
        add(server)
    assert not isinstance(caught.value, CloudBusy)


def test_failed_addition_is_reported(emulator: Emulator, server: str) -> None:
    emulator.octavia.failing = True
    with pytest.raises(OperationFailed, match=f"^Adding instance {server} to pool web failed"):
        add(server)


def test_failed_change_of_a_weight_is_reported(emulator: Emulator, server: str) -> None:
    add(server)
    emulator.octavia.failing = True
    with pytest.raises(OperationFailed, match="Octavia could not change the member"):
        add(server, weight=2)


def test_member_in_error_is_replaced(emulator: Emulator, server: str) -> None:
    broken = emulator.octavia.add_member(
        POOL, name=server, address="10.0.1.7", protocol_port=80, provisioning_status="ERROR"
    )
    add(server)
    assert shown(emulator, "provisioning_status") == [("ACTIVE",)]
    assert broken["id"] not in emulator.octavia.members[POOL]


@pytest.mark.parametrize("name", ["by hand", make_uuid("a server that is gone")])
def test_member_with_the_address_of_the_server_is_taken_over(emulator: Emulator, server: str, name: str) -> None:
    emulator.octavia.add_member(POOL, name=name, address="10.0.1.7", protocol_port=80)
    add(server, weight=2)
    assert shown(emulator, "name", "weight") == [(server, 2)]


@pytest.mark.parametrize("weight", [-1, 257])
def test_weight_out_of_range_is_refused(emulator: Emulator, server: str, weight: int) -> None:
    with pytest.raises(OperationRefused, match=f"^weight: {weight} is not in the range from 0 to 256$"):
        add(server, weight=weight)
    assert members(emulator) == []


# Removing.


def test_removal_is_idempotent(emulator: Emulator, server: str) -> None:
    add(server)
    for _ in range(2):
        balancer().remove_member("web", server)
    assert (members(emulator), emulator.count(DELETED)) == ([], 1)


def test_deleted_server_is_removed(emulator: Emulator, server: str) -> None:
    add(server)
    del emulator.nova.servers[server]
    emulator.neutron.ports.clear()
    balancer().remove_member("web", server)
    assert members(emulator) == []


def test_member_with_the_address_of_the_server_is_removed(emulator: Emulator, server: str) -> None:
    emulator.octavia.add_member(POOL, name="other", address="10.0.1.9", protocol_port=80)
    emulator.octavia.add_member(POOL, name="by hand", address="10.0.1.7", protocol_port=80)
    balancer().remove_member("web", server)
    assert shown(emulator, "name") == [("other",)]


def test_interrupted_removal_is_resumed_without_another_request(emulator: Emulator, server: str) -> None:
    add(server)
    interrupt(emulator, balancer().remove_member, "web", server)
    balancer().remove_member("web", server)
    assert (members(emulator), emulator.count(DELETED)) == ([], 1)


def test_server_being_removed_is_added_after_its_removal(emulator: Emulator, server: str) -> None:
    add(server)
    interrupt(emulator, balancer().remove_member, "web", server)
    add(server)
    assert shown(emulator, "provisioning_status") == [("ACTIVE",)]
    assert emulator.count(POSTED) == 2


def test_removal_is_awaited_after_a_lost_response(emulator: Emulator, server: str) -> None:
    add(server)
    emulator.fail(DELETED, after=True)
    balancer().remove_member("web", server)
    assert members(emulator) == []


def test_failed_removal_is_reported(emulator: Emulator, server: str) -> None:
    add(server)
    emulator.octavia.failing = True
    with pytest.raises(OperationFailed, match=f"^Taking instance {server} out of pool web failed"):
        balancer().remove_member("web", server)


# Draining.


def drain(server: str) -> None:
    with pytest.raises(MemberDraining, match=f"^Instance {server} may still have connections in pool web, which it"):
        balancer().remove_member("web", server, grace_period=60)


def test_draining_member_gets_no_new_connections_until_the_end_of_its_grace_period(
    emulator: Emulator, server: str
) -> None:
    add(server)
    drain(server)
    drain(server)
    assert (shown(emulator, "weight"), emulator.count(PUT)) == ([(0,)], 1)
    Draining.objects.update(since=timezone.now() - timedelta(seconds=61))
    balancer().remove_member("web", server, grace_period=60)
    assert members(emulator) == []
    assert not Draining.objects.exists()


def test_interrupted_drain_keeps_its_start_time(emulator: Emulator, server: str) -> None:
    add(server)
    interrupt(emulator, balancer().remove_member, "web", server, grace_period=60)
    began = Draining.objects.get().since
    drain(server)
    assert (Draining.objects.get().since, emulator.count(PUT)) == (began, 1)


def test_drain_is_awaited_after_a_lost_response(emulator: Emulator, server: str) -> None:
    add(server)
    emulator.fail(PUT, 504, after=True)
    drain(server)
    assert shown(emulator, "weight", "provisioning_status") == [(0, "ACTIVE")]


def test_draining_member_can_be_added_again(emulator: Emulator, server: str) -> None:
    add(server)
    drain(server)
    assert add(server).weight == 1
    assert not Draining.objects.exists()
