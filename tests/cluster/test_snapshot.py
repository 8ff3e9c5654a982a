"""The cloud in memory, as strategies see it."""

from typing import Any

import pytest

from cluster.snapshot import ClusterSnapshot
from tests.builders import make_node, make_server

pytestmark = pytest.mark.django_db


def test_a_node_holds_its_servers() -> None:
    make_server("web-1", make_node("compute1"))
    [server] = ClusterSnapshot.load().nodes["compute1"].servers
    assert (server.name, server.is_active, server.watcher_exclude) == ("web-1", True, False)


def test_free_room_is_the_capacity_without_what_servers_take() -> None:
    node = make_node(vcpus=10, vcpu_reserved=2, vcpu_ratio=2.0)
    make_server("web-1", node, vcpus=3)
    assert ClusterSnapshot.load().nodes["compute1"].free_vcpus == 13


def test_a_server_takes_room_where_it_is_going_too() -> None:
    make_server("web-1", make_node("compute1"), destination=make_node("compute2", memory=4096), memory=1024)
    assert ClusterSnapshot.load().nodes["compute2"].free_memory == 3072


def test_deleted_servers_and_nodes_are_left_out() -> None:
    node, gone = make_node("compute1"), make_node("compute2")
    make_server("web-1", gone)
    deleted = make_server("web-2", node)
    type(node).objects.filter(pk=gone.pk).soft_delete()
    type(deleted).objects.filter(pk=deleted.pk).soft_delete()
    cluster = ClusterSnapshot.load()
    assert (list(cluster.nodes), cluster.servers) == (["compute1"], [])


def test_a_large_cloud_is_read_in_two_queries(django_assert_num_queries: Any) -> None:
    for number in range(10):
        make_server(f"web-{number}", make_node(f"compute{number}"))
    with django_assert_num_queries(2):
        assert sum(node.used_vcpus for node in ClusterSnapshot.load().nodes.values()) == 20
