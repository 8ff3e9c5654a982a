"""Concurrent operations with real threads on PostgreSQL: capacity is given to one operation only."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connections

from cluster.drivers.base import CloudError, NewServer, cloud
from cluster.models import ComputeNode, Pool, Server, Volume
from tests.builders import make_flavor, make_node, make_pool, make_server, make_volume
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


def race(calls: Iterable[Callable[[], None]]) -> int:
    """Run the calls concurrently, and return how many of them were not refused."""
    runners = list(calls)
    barrier = Barrier(len(runners))

    def run(call: Callable[[], None]) -> bool:
        barrier.wait(PATIENCE)
        try:
            call()
        except CloudError:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(len(runners)) as threads:
        return sum(threads.map(run, runners))


def migration_of(volume: Volume, pool: str) -> Callable[[], None]:
    return lambda: cloud().migrate_volume(str(volume.uuid), pool)


def test_concurrent_migrations_do_not_overcommit_a_pool() -> None:
    source = make_pool("a@lvm#one")
    make_pool("b@lvm#one", total_capacity_gb=45)
    volumes = [make_volume(f"data-{number}", source, size=10) for number in range(8)]
    assert race(migration_of(volume, "b@lvm#one") for volume in volumes) == 4
    numbers = Pool.objects.order_by("name").values_list("total_volumes", "allocated_capacity_gb", "virtual_free")
    assert list(numbers) == [(4, 40, 60), (4, 40, 5)]


def test_concurrent_exchanges_of_volumes_neither_deadlock_nor_lose_capacity() -> None:
    pools = [make_pool("a@lvm#one"), make_pool("b@lvm#one")]
    volumes = [make_volume(f"data-{number}", pools[number % 2], size=10) for number in range(8)]
    assert race(migration_of(volume, pools[(number + 1) % 2].name) for number, volume in enumerate(volumes)) == 8
    assert list(Pool.objects.values_list("allocated_capacity_gb", flat=True)) == [40, 40]


def test_concurrent_migrations_of_one_volume_leave_it_in_one_pool() -> None:
    volume = make_volume("data", make_pool("a@lvm#one"))
    pools = [make_pool(f"b@lvm#{number}") for number in range(4)]
    assert race(migration_of(volume, pool.name) for pool in pools) >= 1
    assert sum(Pool.objects.values_list("total_volumes", flat=True)) == 1


def test_concurrent_resizes_do_not_overcommit_a_node() -> None:
    node = make_node(vcpus=12)
    make_flavor("large", vcpus=4, memory=2048, disk=20)
    servers = [make_server(f"web-{number}", node, vcpus=2) for number in range(4)]
    assert race([lambda server=server: cloud().resize(str(server.uuid), "large") for server in servers]) == 2
    assert ComputeNode.objects.with_use().get().used_vcpus == 12


@pytest.mark.parametrize("kind", ["start", "reboot_server"])
def test_power_off_of_a_node_and_start_of_its_server_exclude_each_other(kind: str) -> None:
    begin = getattr(cloud(), kind)
    for number in range(10):
        node = make_node(f"compute{number}")
        server = make_server(f"web-{number}", node, state="stopped")
        off, start = str(node.uuid), str(server.uuid)
        race([lambda off=off: cloud().power_off(off), lambda start=start: begin(start)])
    assert not Server.objects.filter(state="active", node__power_state="off").exists()


def test_concurrent_migrations_without_a_destination_do_not_overcommit_a_node() -> None:
    source = make_node("source")
    make_node("small", vcpus=4, memory=8192)
    make_node("smaller", vcpus=2, memory=4096)
    servers = [make_server(f"web-{number}", source, vcpus=2) for number in range(6)]
    assert race([lambda server=server: cloud().live_migrate(str(server.uuid)) for server in servers]) == 3
    used = ComputeNode.objects.with_use().order_by("hostname").values_list("hostname", "used_vcpus")
    assert list(used) == [("small", 4), ("smaller", 2), ("source", 6)]


def test_concurrent_evacuations_move_each_server_once_and_do_not_overcommit_a_node() -> None:
    failed = make_node("failed", state="down", power_state="off", status="disabled")
    make_node("small", vcpus=4)
    servers = [make_server(f"web-{number}", failed, vcpus=2) for number in range(3)]
    calls = [lambda server=server: cloud().evacuate(str(server.uuid)) for server in servers for _ in range(3)]
    assert race(calls) == 2
    used = ComputeNode.objects.with_use().order_by("hostname").values_list("hostname", "used_vcpus")
    assert list(used) == [("failed", 2), ("small", 4)]


def creation_with(token: str) -> Callable[[], None]:
    def create() -> None:
        cloud().create_server(NewServer("web", "small", token))

    return create


def test_concurrent_creations_do_not_overcommit_a_node() -> None:
    make_flavor("small", vcpus=2)
    for number in range(2):
        make_node(f"compute{number}", vcpus=5)
    assert race(creation_with(f"token {number}") for number in range(8)) == 4
    assert {use["vcpus"] for use in Server.objects.use_by_node(ComputeNode.objects.all()).values()} == {4}


def test_concurrent_creations_with_one_token_create_one_server() -> None:
    make_flavor("small")
    make_node("compute1")
    assert race(creation_with("token") for _ in range(8)) >= 1
    assert Server.objects.count() == 1
