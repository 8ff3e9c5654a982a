"""One reading of the cloud at a time, however many processes want one."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from cluster.drivers.base import cloud
from cluster.models import ComputeNode, Server, Synchronization
from cluster.models.synchronization import LEASE
from cluster.operations import synchronization
from cluster.operations.synchronization import Overtaken, make_renewal_checkpoint, synchronize
from cluster.synchronization.mirroring import COMPUTE_NODES
from tests.cluster.emulator.server import Emulator

HOUR = timedelta(hours=1)
READING = "os-hypervisors/detail"


def synchronize_in_a_thread(**options: Any) -> bool:
    try:
        return synchronize(**options) is not None
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_of_several_that_want_a_fresh_cloud_one_reads_it(emulator: Emulator) -> None:
    cloud().find_compute_service("compute1")
    emulator.fail(READING, 503, seconds=0.2)
    with ThreadPoolExecutor(8) as pool:
        read = list(pool.map(lambda _: synchronize_in_a_thread(age=HOUR), range(8)))
    assert (read.count(True), emulator.count(READING)) == (1, 2)


@pytest.mark.django_db(transaction=True)
def test_of_several_that_insist_on_reading_none_reads_beside_another(emulator: Emulator) -> None:
    cloud().find_compute_service("compute1")
    with ThreadPoolExecutor(4) as pool:
        read = list(pool.map(lambda _: synchronize_in_a_thread(), range(4)))
    lists = [request for request in emulator.requests if "inventories" not in request and "/os-" in request]
    rounds = [request.rsplit("/", 1)[1] for request in lists if request.startswith("GET /compute")][1:]
    assert read == [True] * 4
    # Each reading asks for these three in this order: two at a time would mix them.
    assert rounds == ["os-services", "detail", "os-aggregates"] * 4


@pytest.mark.django_db
def test_a_caller_that_does_not_wait_leaves_it_to_the_one_that_reads(emulator: Emulator) -> None:
    Synchronization.claim()
    assert synchronize(HOUR, wait=False) is None
    assert not ComputeNode.objects.exists()


@pytest.mark.django_db
def test_a_reader_that_died_holds_nobody_up_for_ever(emulator: Emulator) -> None:
    Synchronization.claim()
    Synchronization.objects.update(held_until=timezone.now() - timedelta(seconds=1))
    assert synchronize() is not None


@pytest.mark.django_db
def test_a_fresh_cloud_is_not_read_again(emulator: Emulator) -> None:
    synchronize()
    assert synchronize(HOUR) is None


@pytest.mark.django_db
def test_a_cloud_whose_last_reading_failed_is_not_fresh(emulator: Emulator) -> None:
    synchronize()
    Synchronization.objects.update(problem="The cloud does not answer")
    assert synchronize(HOUR) is not None


@pytest.mark.django_db
def test_a_long_reading_holds_on_to_its_right(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synchronization, "RENEWAL", 0)
    holder = Synchronization.claim()
    assert holder
    Synchronization.objects.update(held_until=timezone.now())
    make_renewal_checkpoint(holder)()
    assert Synchronization.current().held_until > timezone.now() + LEASE / 2  # type: ignore[operator]


@pytest.mark.django_db
def test_a_list_of_many_pages_gives_signs_of_life(emulator: Emulator) -> None:
    emulator.page_size = 1
    for number in range(5):
        emulator.nova.add_server(f"web-{number}", "compute1")
    pages: list[int] = []
    cloud().read_contents(lambda: pages.append(emulator.count("servers/detail")))
    assert set(pages) >= {1, 2, 3, 4, 5}


@pytest.mark.django_db
def test_a_reading_that_was_overtaken_breaks_off(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synchronization, "RENEWAL", 0)
    holder = Synchronization.claim()
    assert holder
    Synchronization.objects.update(holder="00000000-0000-0000-0000-000000000001")
    with pytest.raises(Overtaken):
        make_renewal_checkpoint(holder)()


@pytest.mark.django_db
def test_nothing_is_written_of_a_reading_that_was_overtaken(emulator: Emulator) -> None:
    holder = Synchronization.claim()
    assert holder
    contents = cloud().read_contents()
    Synchronization.objects.update(holder="00000000-0000-0000-0000-000000000001")
    with pytest.raises(Overtaken):
        synchronization.write_contents(contents, holder, timezone.now())
    assert not ComputeNode.objects.exists()


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_server_that_is_recorded_on_another_node_does_not_wait_for_a_reading_that_is_being_written(
    emulator: Emulator,
) -> None:
    server = emulator.nova.add_server("web", "compute1")
    synchronize()
    emulator.nova.servers[server]["OS-EXT-SRV-ATTR:host"] = "compute2"

    def record() -> str | None:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '2s'")
        try:
            return cloud().find_server(server).host
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        COMPUTE_NODES.rows()
        assert pool.submit(record).result() == "compute2"
    assert Server.objects.get().node.hostname == "compute2"
