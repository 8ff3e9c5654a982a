"""Races for capacity with real threads on PostgreSQL: what there is, is given away once."""

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


def race(contestants: Iterable[Callable[[], None]]) -> int:
    """Start all at once, and return how many were not refused."""
    runners = list(contestants)
    barrier = Barrier(len(runners))

    def run(contestant: Callable[[], None]) -> bool:
        barrier.wait(PATIENCE)
        try:
            contestant()
        except CloudError:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(len(runners)) as threads:
        return sum(threads.map(run, runners))


def moving(volume: Volume, pool: str) -> Callable[[], None]:
    return lambda: cloud().migrate_volume(str(volume.uuid), pool)


def test_a_pool_is_never_promised_beyond_its_capacity() -> None:
    source = make_pool("a@lvm#one")
    make_pool("b@lvm#one", total_capacity_gb=45)
    volumes = [make_volume(f"data-{number}", source, size=10) for number in range(8)]
    assert race(moving(volume, "b@lvm#one") for volume in volumes) == 4
    numbers = Pool.objects.order_by("name").values_list("total_volumes", "allocated_capacity_gb", "virtual_free")
    assert list(numbers) == [(4, 40, 60), (4, 40, 5)]


def test_volumes_that_change_places_neither_lock_each_other_out_nor_lose_capacity() -> None:
    pools = [make_pool("a@lvm#one"), make_pool("b@lvm#one")]
    volumes = [make_volume(f"data-{number}", pools[number % 2], size=10) for number in range(8)]
    assert race(moving(volume, pools[(number + 1) % 2].name) for number, volume in enumerate(volumes)) == 8
    assert list(Pool.objects.values_list("allocated_capacity_gb", flat=True)) == [40, 40]


def test_one_of_many_moves_of_one_volume_is_begun() -> None:
    volume = make_volume("data", make_pool("a@lvm#one"))
    pools = [make_pool(f"b@lvm#{number}") for number in range(4)]
    assert race(moving(volume, pool.name) for pool in pools) >= 1
    assert sum(Pool.objects.values_list("total_volumes", flat=True)) == 1


def test_servers_that_grow_at_once_do_not_outgrow_their_node() -> None:
    node = make_node(vcpus=12)
    make_flavor("large", vcpus=4, memory=2048, disk=20)
    servers = [make_server(f"web-{number}", node, vcpus=2) for number in range(4)]
    assert race([lambda server=server: cloud().resize(str(server.uuid), "large") for server in servers]) == 2
    assert ComputeNode.objects.with_use().get().used_vcpus == 12


@pytest.mark.parametrize("kind", ["start", "reboot_server"])
def test_a_node_is_switched_off_or_its_server_is_started_and_never_both(kind: str) -> None:
    begin = getattr(cloud(), kind)
    for number in range(10):
        node = make_node(f"compute{number}")
        server = make_server(f"web-{number}", node, state="stopped")
        off, start = str(node.uuid), str(server.uuid)
        race([lambda off=off: cloud().power_off(off), lambda start=start: begin(start)])
    assert not Server.objects.filter(state="active", node__power_state="off").exists()


def test_servers_that_the_scheduler_places_at_once_do_not_overbook_a_node() -> None:
    source = make_node("source")
    make_node("small", vcpus=4, memory=8192)
    make_node("smaller", vcpus=2, memory=4096)
    servers = [make_server(f"web-{number}", source, vcpus=2) for number in range(6)]
    assert race([lambda server=server: cloud().live_migrate(str(server.uuid)) for server in servers]) == 3
    used = ComputeNode.objects.with_use().order_by("hostname").values_list("hostname", "used_vcpus")
    assert list(used) == [("small", 4), ("smaller", 2), ("source", 6)]


def test_of_many_who_evacuate_servers_at_once_one_moves_each_and_no_node_is_overbooked() -> None:
    failed = make_node("failed", state="down", power_state="off", status="disabled")
    make_node("small", vcpus=4)
    servers = [make_server(f"web-{number}", failed, vcpus=2) for number in range(3)]
    contestants = [lambda server=server: cloud().evacuate(str(server.uuid)) for server in servers for _ in range(3)]
    assert race(contestants) == 2
    used = ComputeNode.objects.with_use().order_by("hostname").values_list("hostname", "used_vcpus")
    assert list(used) == [("failed", 2), ("small", 4)]


def creating(token: str) -> Callable[[], None]:
    def create() -> None:
        cloud().create_server(NewServer("web", "small", token))

    return create


def test_nodes_are_never_given_away_beyond_their_capacity() -> None:
    make_flavor("small", vcpus=2)
    for number in range(2):
        make_node(f"compute{number}", vcpus=5)
    assert race(creating(f"token {number}") for number in range(8)) == 4
    assert {use["vcpus"] for use in Server.objects.use_by_node(ComputeNode.objects.all()).values()} == {4}


def test_of_many_who_create_with_one_token_one_makes_a_server() -> None:
    make_flavor("small")
    make_node("compute1")
    assert race(creating("token") for _ in range(8)) >= 1
    assert Server.objects.count() == 1
