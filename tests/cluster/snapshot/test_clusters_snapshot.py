"""The snapshot of clusters of nodes that strategies read."""

from typing import Any

import pytest

from cluster.models import Cluster, Node, Server
from cluster.snapshot.cloud import load_clusters
from tests.builders import make_cluster, make_member, make_server

pytestmark = pytest.mark.django_db


def make_running_cluster(name: str, size: int = 2) -> Cluster:
    """Make a cluster of nodes with running servers."""
    cluster = make_cluster(name, size=size)
    for node in cluster.members():
        Node.objects.filter(pk=node.pk).update(physical_id=make_server(node.name).uuid)
    return cluster


def test_cluster_has_its_members_with_their_server_states() -> None:
    make_running_cluster("web")
    make_member("alone")
    [loaded] = load_clusters()
    assert (loaded.name, loaded.status, loaded.desired_capacity) == ("web", "ACTIVE", 2)
    assert [(one.name, one.status, one.server_state) for one in loaded.members] == [
        ("web-1", "ACTIVE", "active"),
        ("web-2", "ACTIVE", "active"),
    ]
    assert (loaded.broken, loaded.missing, loaded.is_occupied) == ([], 0, False)


def test_member_with_a_deleted_or_stopped_server_is_broken() -> None:
    make_running_cluster("web", 3)
    Server.objects.filter(name="web-1").soft_delete()
    Server.objects.filter(name="web-3").update(state="stopped")
    assert [one.name for one in load_clusters()[0].broken] == ["web-1", "web-3"]


@pytest.mark.parametrize(
    ("status", "broken"),
    [("ACTIVE", 0), ("WARNING", 0), ("DELETING", 0), ("ERROR", 1), ("INIT", 1), ("CREATING", 1), ("RECOVERING", 1)],
)
def test_member_is_broken_depending_on_its_status(status: str, broken: int) -> None:
    make_running_cluster("web", 1)
    Node.objects.update(status=status)
    assert len(load_clusters()[0].broken) == broken


@pytest.mark.parametrize(("wanted", "missing"), [(1, 0), (2, 0), (5, 3)])
def test_missing_members_are_counted_from_the_desired_capacity(wanted: int, missing: int) -> None:
    make_running_cluster("web")
    Cluster.objects.update(desired_capacity=wanted)
    assert load_clusters()[0].missing == missing


def test_deleted_clusters_and_nodes_are_omitted() -> None:
    make_running_cluster("gone")
    Cluster.objects.soft_delete()
    kept = make_running_cluster("kept")
    Node.objects.filter(pk=kept.members()[0].pk).soft_delete()
    assert [(one.name, [member.name for member in one.members]) for one in load_clusters()] == [("kept", ["kept-2"])]


@pytest.mark.parametrize("size", [1, 10])
def test_clusters_are_read_in_two_queries(django_assert_num_queries: Any, size: int) -> None:
    for number in range(size):
        make_running_cluster(f"web-{number}", size)
    with django_assert_num_queries(2):
        assert sum(len(one.members) for one in load_clusters()) == size**2
