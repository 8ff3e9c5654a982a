"""Members of pools of the embedded load balancer, and their connections."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from cluster.drivers.balancing import BalancerPool, BalancingPoolNotFound, MemberDraining, PoolMember, balancer
from cluster.drivers.base import Cloud, CloudMisconfigured, OperationRefused, ServerNotFound, cloud, using_cloud
from cluster.drivers.embedded.balancing import EmbeddedBalancer
from cluster.models import BalancingMember, BalancingPool, Draining, Server
from cluster.simulated import SimulatedCloud
from tests.builders import make_balancing_pool, make_server

pytestmark = pytest.mark.django_db


@pytest.fixture
def pool() -> BalancingPool:
    return make_balancing_pool("web")


@pytest.fixture
def server(pool: BalancingPool) -> str:
    return str(make_server("web-1").uuid)


def add(server: str, port: int = 80, **options: Any) -> PoolMember:
    return balancer().add_member("web", server, port, **options)


def shown() -> list[tuple[int, int, int]]:
    return list(BalancingMember.objects.values_list("port", "weight", "connections"))


def connect(number: int) -> None:
    EmbeddedBalancer().open_connections("web", number)


# Reading.


def test_pool_is_found_by_name_and_by_uuid(pool: BalancingPool) -> None:
    expected = BalancerPool(str(pool.uuid), "web")
    assert [balancer().find_pool(name) for name in ("web", str(pool.uuid))] == [expected, expected]


@pytest.mark.parametrize("name", ["none", "Web", "", "a\0b", "7a7c9b4e-8d0d-4a58-8a1f-1f6f5f1d2a11"])
def test_unknown_pool_raises_pool_not_found(server: str, name: str) -> None:
    calls = (
        balancer().find_pool,
        balancer().members,
        lambda name: balancer().add_member(name, server, 80),
        lambda name: balancer().remove_member(name, server),
    )
    for call in calls:
        with pytest.raises(BalancingPoolNotFound, match=r"^Load-balancer pool .*not found$"):
            call(name)


def test_deleted_pool_raises_pool_not_found(server: str) -> None:
    BalancingPool.objects.all().soft_delete()
    with pytest.raises(BalancingPoolNotFound):
        add(server)


def test_members_are_returned_with_their_connections(server: str) -> None:
    add(server, port=8080, weight=3)
    connect(2)
    assert balancer().members("web") == [PoolMember(server, 8080, 3, 2)]


def test_member_query_count_does_not_depend_on_the_number_of_members(
    pool: BalancingPool, django_assert_num_queries: Callable[[int], AbstractContextManager[object]]
) -> None:
    for number in range(5):
        BalancingMember.objects.create(pool=pool, server=make_server(f"web-{number}"), port=80)
    with django_assert_num_queries(2):
        assert len(balancer().members("web")) == 5


# Adding and removing.


def test_server_added_twice_is_one_member(server: str) -> None:
    assert add(server) == add(server) == PoolMember(server, 80, 1, 0)
    assert shown() == [(80, 1, 0)]


def test_server_can_be_in_several_pools(server: str) -> None:
    make_balancing_pool("api")
    add(server)
    balancer().add_member("api", server, 443)
    assert shown() == [(80, 1, 0), (443, 1, 0)]


def test_repeated_addition_updates_the_weight_and_keeps_the_connections(server: str) -> None:
    add(server)
    connect(2)
    assert add(server, weight=7) == PoolMember(server, 80, 7, 2)
    assert shown() == [(80, 7, 2)]


def test_port_of_a_member_cannot_be_changed(server: str) -> None:
    add(server)
    with pytest.raises(OperationRefused, match=f"^Instance {server} is in pool web with port 80 already$"):
        add(server, port=443)
    assert shown() == [(80, 1, 0)]


@pytest.mark.parametrize("missing", [str(uuid4()), "no UUID", ""], ids=["unknown UUID", "not a UUID", "empty"])
def test_unknown_server_is_not_added(pool: BalancingPool, missing: str) -> None:
    with pytest.raises(ServerNotFound):
        add(missing)
    assert shown() == []


def test_deleted_server_stays_a_member_until_removed_and_is_not_added_again(server: str) -> None:
    add(server)
    cloud().delete_server(server)
    assert balancer().members("web") == [PoolMember(server, 80, 1, 0)]
    balancer().remove_member("web", server)
    with pytest.raises(ServerNotFound):
        add(server)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"port": 0}, "port: 0 is not in the range from 1 to 65535"),
        ({"port": 65536}, "port: 65536 is not in the range from 1 to 65535"),
        ({"weight": -1}, "weight: -1 is not in the range from 0 to 256"),
        ({"weight": 257}, "weight: 257 is not in the range from 0 to 256"),
    ],
)
def test_port_or_weight_out_of_range_is_refused(server: str, options: dict[str, int], rule: str) -> None:
    with pytest.raises(OperationRefused, match=f"^{rule}$"):
        add(server, **options)
    assert shown() == []


def test_removal_is_idempotent(server: str) -> None:
    other = str(make_server("web-2").uuid)
    add(server)
    add(other)
    for _ in range(2):
        balancer().remove_member("web", server)
    assert [member.server for member in balancer().members("web")] == [other]


# Draining.


def drain(server: str, grace_period: float = 60) -> MemberDraining:
    with pytest.raises(MemberDraining) as caught:
        balancer().remove_member("web", server, grace_period)
    return caught.value


def test_draining_member_keeps_its_connections_and_gets_no_new_ones(server: str) -> None:
    add(server)
    connect(3)
    busy = drain(server)
    assert str(busy) == (
        f"Instance {server} still has 3 of its connections in pool web,"
        f" which it has until {busy.until:%H:%M:%S} UTC to end"
    )
    with pytest.raises(OperationRefused, match=r"^Pool web has no member that gets connections$"):
        connect(1)
    assert shown() == [(80, 0, 3)]


def test_member_without_connections_is_removed_at_once(server: str) -> None:
    add(server)
    balancer().remove_member("web", server, grace_period=60)
    assert (shown(), Draining.objects.count()) == ([], 0)


def test_draining_member_is_removed_after_its_last_connection_ends(server: str) -> None:
    add(server)
    connect(3)
    drain(server)
    EmbeddedBalancer().close_connections("web", 3)
    balancer().remove_member("web", server, grace_period=60)
    assert (shown(), Draining.objects.count()) == ([], 0)


def test_draining_member_is_removed_after_the_grace_period(server: str) -> None:
    add(server)
    connect(3)
    until = drain(server).until
    assert drain(server).until == until
    Draining.objects.update(since=timezone.now() - timedelta(seconds=61))
    balancer().remove_member("web", server, grace_period=60)
    assert (shown(), Draining.objects.count()) == ([], 0)


def test_member_is_removed_at_once_without_a_grace_period(server: str) -> None:
    add(server)
    connect(3)
    drain(server)
    balancer().remove_member("web", server)
    assert (shown(), Draining.objects.count()) == ([], 0)


def test_adding_a_draining_member_again_restarts_its_grace_period(server: str) -> None:
    add(server)
    connect(3)
    drain(server)
    Draining.objects.update(since=timezone.now() - timedelta(seconds=61))
    assert add(server) == PoolMember(server, 80, 1, 3)
    drain(server)


@pytest.mark.parametrize("grace_period", [-1, float("nan"), 1e9], ids=["negative", "not a number", "too long"])
def test_invalid_grace_period_is_refused(server: str, grace_period: float) -> None:
    add(server)
    with pytest.raises(OperationRefused, match=r"^grace_period: "):
        balancer().remove_member("web", server, grace_period)
    assert shown() == [(80, 1, 0)]


# Connections.


def test_connections_are_distributed_by_weight(pool: BalancingPool) -> None:
    for number, weight in enumerate([1, 3, 0]):
        add(str(make_server(f"web-{number}").uuid), weight=weight)
    connect(40)
    assert [connections for _, _, connections in shown()] == [10, 30, 0]


def test_new_connections_go_to_the_members_with_the_fewest(pool: BalancingPool) -> None:
    add(str(make_server("web-1").uuid))
    connect(4)
    add(str(make_server("web-2").uuid))
    connect(4)
    assert [connections for _, _, connections in shown()] == [4, 4]


def test_connections_of_draining_members_end_first(pool: BalancingPool) -> None:
    servers = [str(make_server(f"web-{number}").uuid) for number in range(2)]
    for server in servers:
        add(server)
    connect(8)
    drain(servers[1])
    EmbeddedBalancer().close_connections("web", 5)
    assert [connections for _, _, connections in shown()] == [3, 0]
    EmbeddedBalancer().close_connections("web", 5)
    assert [connections for _, _, connections in shown()] == [0, 0]


# Other drivers and the simulated cloud.


def test_simulation_changes_no_pool(server: str) -> None:
    add(server)
    with using_cloud(SimulatedCloud.load()):
        assert balancer().add_member("web", server, 80, weight=9).weight == 9
        balancer().remove_member("web", server, grace_period=60)
        balancer().remove_member("none", server)
    assert (shown(), Draining.objects.count()) == ([(80, 1, 0)], 0)


def test_driver_without_load_balancers_raises_cloud_misconfigured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(cloud()), "make_balancer", Cloud.make_balancer)
    with pytest.raises(CloudMisconfigured, match=r"^WATCHER_CLOUD: the driver of this cloud"):
        balancer()


def test_members_of_a_purged_server_are_deleted(server: str) -> None:
    add(server)
    Server.objects.all().delete()
    assert shown() == []
