"""Races for pools with real threads on PostgreSQL: a server is in a pool once."""

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


def race(*contestants: Any) -> None:
    """Start all at once, and have whatever they raise raised."""
    barrier = Barrier(len(contestants))

    def run(contestant: Any) -> None:
        barrier.wait(10)
        try:
            contestant()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(contestants)) as threads:
        list(threads.map(run, contestants))


def test_a_server_that_many_add_at_once_is_one_member() -> None:
    make_balancing_pool("web")
    server = str(make_server().uuid)
    race(*[lambda: balancer().add_member("web", server, 80)] * 8)
    assert BalancingMember.objects.count() == 1


def test_a_server_is_in_or_out_when_some_add_and_others_remove_it() -> None:
    make_balancing_pool("web")
    server = str(make_server().uuid)
    adding, removing = (
        lambda: balancer().add_member("web", server, 80),
        lambda: balancer().remove_member("web", server),
    )
    race(*[adding, removing] * 4)
    assert BalancingMember.objects.count() <= 1


def test_a_leaving_that_many_begin_at_once_is_counted_from_one_moment() -> None:
    server = make_server()
    make_balancing_pool("web", server, connections=3)
    seen = []

    def leave() -> None:
        with pytest.raises(MemberDraining) as caught:
            balancer().remove_member("web", str(server.uuid), grace_period=60)
        seen.append(caught.value.until)

    race(*[leave] * 8)
    assert (Draining.objects.count(), len(set(seen)), len(seen)) == (1, 1, 8)


def test_no_connection_is_lost_or_counted_twice() -> None:
    make_balancing_pool("web", *(make_server(f"web-{number}") for number in range(3)))
    race(*[lambda: EmbeddedBalancer().open_connections("web", 10)] * 6)
    assert list(BalancingMember.objects.values_list("connections", flat=True)) == [20, 20, 20]


def test_a_server_does_not_get_connections_after_it_has_left() -> None:
    server = make_server()
    make_balancing_pool("web", server, make_server("web-2"))

    def leave() -> None:
        with suppress(MemberDraining):
            balancer().remove_member("web", str(server.uuid), grace_period=60)

    race(leave, *[lambda: EmbeddedBalancer().open_connections("web", 10)] * 4)
    assert sum(BalancingMember.objects.values_list("connections", flat=True)) == 40
