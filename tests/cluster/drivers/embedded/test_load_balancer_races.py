"""Concurrent changes of pools with real threads on PostgreSQL."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from typing import Any

import pytest
from django.db import connections

from cluster.drivers.balancing import MemberDraining, balancer
from cluster.drivers.embedded.balancing import EmbeddedBalancer
from cluster.models import BalancingMember, Draining
from tests.builders import make_balancing_pool, make_server

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


def race(*calls: Any) -> None:
    """Run the calls concurrently, and raise the first exception of one of them."""
    barrier = Barrier(len(calls))

    def run(call: Any) -> None:
        barrier.wait(10)
        try:
            call()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as threads:
        list(threads.map(run, calls))


def test_concurrent_additions_of_a_server_create_one_member() -> None:
    make_balancing_pool("web")
    server = str(make_server().uuid)
    race(*[lambda: balancer().add_member("web", server, 80)] * 8)
    assert BalancingMember.objects.count() == 1


def test_concurrent_additions_and_removals_leave_at_most_one_member() -> None:
    make_balancing_pool("web")
    server = str(make_server().uuid)
    adding, removing = (
        lambda: balancer().add_member("web", server, 80),
        lambda: balancer().remove_member("web", server),
    )
    race(*[adding, removing] * 4)
    assert BalancingMember.objects.count() <= 1


def test_concurrent_drains_of_a_member_share_one_start_time() -> None:
    server = make_server()
    make_balancing_pool("web", server, connections=3)
    seen = []

    def leave() -> None:
        with pytest.raises(MemberDraining) as caught:
            balancer().remove_member("web", str(server.uuid), grace_period=60)
        seen.append(caught.value.until)

    race(*[leave] * 8)
    assert (Draining.objects.count(), len(set(seen)), len(seen)) == (1, 1, 8)


def test_concurrent_connections_are_counted_exactly_once() -> None:
    make_balancing_pool("web", *(make_server(f"web-{number}") for number in range(3)))
    race(*[lambda: EmbeddedBalancer().open_connections("web", 10)] * 6)
    assert list(BalancingMember.objects.values_list("connections", flat=True)) == [20, 20, 20]


def test_connections_opened_during_a_drain_are_counted_exactly_once() -> None:
    server = make_server()
    make_balancing_pool("web", server, make_server("web-2"))

    def leave() -> None:
        with suppress(MemberDraining):
            balancer().remove_member("web", str(server.uuid), grace_period=60)

    race(leave, *[lambda: EmbeddedBalancer().open_connections("web", 10)] * 4)
    assert sum(BalancingMember.objects.values_list("connections", flat=True)) == 40
