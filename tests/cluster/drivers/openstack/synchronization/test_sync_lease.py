"""The lease of a synchronization: one process reads the cloud at a time."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from cluster.drivers.base import cloud
from cluster.models import ComputeNode, Server, Synchronization
from cluster.operations import synchronization
from cluster.operations.synchronization import Overtaken, make_renewal_checkpoint, synchronize
from cluster.synchronization.mirroring import COMPUTE_NODES
from tests.cluster.emulator.server import Emulator
from watcher_site.models.exclusive_tasks import LEASE

HOUR = timedelta(hours=1)
READING = "os-hypervisors/detail"


def synchronize_in_a_thread(**options: Any) -> bool:
    try:
        return synchronize(**options) is not None
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_one_of_several_concurrent_synchronizations_with_a_maximum_age_reads_the_cloud(emulator: Emulator) -> None:
    cloud().find_compute_service("compute1")
    emulator.fail(READING, 503, seconds=0.2)
    with ThreadPoolExecutor(8) as pool:
        read = list(pool.map(lambda _: synchronize_in_a_thread(age=HOUR), range(8)))
    assert (read.count(True), emulator.count(READING)) == (1, 2)


@pytest.mark.django_db(transaction=True)
def test_forced_synchronizations_run_one_after_another(emulator: Emulator) -> None:
    cloud().find_compute_service("compute1")
    with ThreadPoolExecutor(4) as pool:
        read = list(pool.map(lambda _: synchronize_in_a_thread(), range(4)))
    lists = [request for request in emulator.requests if "inventories" not in request and "/os-" in request]
    rounds = [request.rsplit("/", 1)[1] for request in lists if request.startswith("GET /compute")][1:]
    assert read == [True] * 4
    # Each synchronization requests these three in this order: two at a time would interleave them.
    assert rounds == ["os-services", "detail", "os-aggregates"] * 4


@pytest.mark.django_db
def test_synchronization_without_waiting_returns_while_another_runs(emulator: Emulator) -> None:
    Synchronization.claim()
    assert synchronize(HOUR, wait=False) is None
    assert not ComputeNode.objects.exists()


@pytest.mark.django_db
def test_expired_lease_is_taken_over(emulator: Emulator) -> None:
    Synchronization.claim()
    Synchronization.objects.update(held_until=timezone.now() - timedelta(seconds=1))
    assert synchronize() is not None


@pytest.mark.django_db
def test_recent_synchronization_is_not_repeated(emulator: Emulator) -> None:
    synchronize()
    assert synchronize(HOUR) is None


@pytest.mark.django_db
def test_synchronization_is_repeated_after_a_failure(emulator: Emulator) -> None:
    synchronize()
    Synchronization.objects.update(problem="The cloud does not answer")
    assert synchronize(HOUR) is not None


@pytest.mark.django_db
def test_lease_is_renewed_during_a_long_synchronization(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synchronization, "RENEWAL", 0)
    holder = Synchronization.claim()
    assert holder
    Synchronization.objects.update(held_until=timezone.now())
    make_renewal_checkpoint(holder)()
    assert Synchronization.current().held_until > timezone.now() + LEASE / 2  # type: ignore[operator]


@pytest.mark.django_db
def test_checkpoint_is_called_for_each_page(emulator: Emulator) -> None:
    emulator.page_size = 1
    for number in range(5):
        emulator.nova.add_server(f"web-{number}", "compute1")
    pages: list[int] = []
    cloud().read_contents(lambda: pages.append(emulator.count("servers/detail")))
    assert set(pages) >= {1, 2, 3, 4, 5}


@pytest.mark.django_db
def test_synchronization_that_lost_its_lease_stops(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synchronization, "RENEWAL", 0)
    holder = Synchronization.claim()
    assert holder
    Synchronization.objects.update(holder="00000000-0000-0000-0000-000000000001")
    with pytest.raises(Overtaken):
        make_renewal_checkpoint(holder)()


@pytest.mark.django_db
def test_synchronization_that_lost_its_lease_writes_nothing(emulator: Emulator) -> None:
    holder = Synchronization.claim()
    assert holder
    contents = cloud().read_contents()
    Synchronization.objects.update(holder="00000000-0000-0000-0000-000000000001")
    with pytest.raises(Overtaken):
        synchronization.write_contents(contents, holder, timezone.now())
    assert not ComputeNode.objects.exists()


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_server_update_does_not_wait_for_a_synchronization_being_written(
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
