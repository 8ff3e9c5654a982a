"""The deletion policy says which nodes go, and how."""

from typing import Any

import pytest

from cluster.models import Cluster, Node
from tests.builders import make_binding, make_cluster, make_member
from tests.cluster.policies.asking import ask
from tests.cluster.policies.placed import cluster_on, hosts_in

pytestmark = pytest.mark.django_db

OLDEST = {"criteria": "OLDEST_FIRST"}


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster(size=5)


def bind(cluster: Cluster, **spec: Any) -> None:
    make_binding(cluster, "senlin.policy.deletion-1.1", spec)


def uuids(cluster: Cluster, *indexes: int) -> list[str]:
    return [str(cluster.members().get(index=index).uuid) for index in indexes]


@pytest.mark.parametrize(
    ("criteria", "expected"), [("OLDEST_FIRST", (1, 2)), ("YOUNGEST_FIRST", (5, 4)), ("OLDEST_PROFILE_FIRST", (1, 2))]
)
def test_it_names_the_candidates_by_its_criteria(cluster: Cluster, criteria: str, expected: tuple[int, ...]) -> None:
    bind(cluster, criteria=criteria)
    data = ask(cluster, "CLUSTER_SCALE_IN", count=2)
    assert data["deletion"] == {
        "count": 2,
        "candidates": uuids(cluster, *expected),
        "destroy_after_deletion": True,
        "grace_period": 0,
        "reduce_desired_capacity": True,
    }


def test_nodes_that_are_not_well_go_first(cluster: Cluster) -> None:
    Node.objects.filter(index=4).update(status="ERROR")
    bind(cluster, **OLDEST)
    assert ask(cluster, "CLUSTER_SCALE_IN", count=2)["deletion"]["candidates"] == uuids(cluster, 4, 1)


def test_as_many_go_as_the_scaling_policy_said_before(cluster: Cluster) -> None:
    bind(cluster, **OLDEST)
    make_binding(cluster, "senlin.policy.scaling-1.0", {"event": "CLUSTER_SCALE_IN", "adjustment": {"number": 3}})
    assert ask(cluster, "CLUSTER_SCALE_IN")["deletion"]["candidates"] == uuids(cluster, 1, 2, 3)


def test_as_many_go_of_each_zone_as_the_placement_policy_said_before() -> None:
    east, west = hosts_in("east", "west")
    cluster = cluster_on(east, west, west, west, east)
    bind(cluster, **OLDEST)
    make_binding(cluster, "senlin.policy.zone_placement-1.0", {"zones": [{"name": "east"}, {"name": "west"}]})
    data = ask(cluster, "CLUSTER_SCALE_IN", count=3)
    assert data["deletion"]["zones"] == {"west": 2, "east": 1}
    assert set(data["deletion"]["candidates"]) == set(uuids(cluster, 1, 2, 3))


def test_a_resize_has_as_many_go_as_it_says(cluster: Cluster) -> None:
    bind(cluster, **OLDEST)
    data = {"deletion": {"count": 2}}
    assert ask(cluster, "CLUSTER_RESIZE", data)["deletion"]["candidates"] == uuids(cluster, 1, 2)


def test_a_resize_that_adds_nodes_has_none_go(cluster: Cluster) -> None:
    bind(cluster, **OLDEST)
    assert "deletion" not in ask(cluster, "CLUSTER_RESIZE", {"creation": {"count": 2}})


def test_nodes_that_were_named_are_kept(cluster: Cluster) -> None:
    bind(cluster, criteria="OLDEST_FIRST", destroy_after_deletion=False, grace_period=7)
    data = {"deletion": {"count": 2, "candidates": uuids(cluster, 5, 3)}}
    decided = ask(cluster, "CLUSTER_DEL_NODES", data)["deletion"]
    assert (decided["count"], decided["candidates"]) == (2, uuids(cluster, 5, 3))
    assert (decided["destroy_after_deletion"], decided["grace_period"]) == (False, 7)


def test_a_node_that_is_deleted_alone_is_the_one_that_goes(cluster: Cluster) -> None:
    bind(cluster, **OLDEST)
    decided = ask(cluster, "NODE_DELETE", node=cluster.members().get(index=4))["deletion"]
    assert (decided["count"], decided["candidates"]) == (1, uuids(cluster, 4))


def test_a_node_that_somebody_deletes_goes_with_its_server_whatever_is_said_of_servers(cluster: Cluster) -> None:
    bind(cluster, destroy_after_deletion=False, grace_period=7)
    decided = ask(cluster, "NODE_DELETE", node=cluster.members().get(index=4))["deletion"]
    assert "destroy_after_deletion" not in decided
    assert decided["grace_period"] == 7


def test_candidates_that_were_decided_on_are_kept(cluster: Cluster) -> None:
    bind(cluster, **OLDEST)
    data = {"deletion": {"count": 1, "candidates": uuids(cluster, 5)}}
    assert ask(cluster, "CLUSTER_SCALE_IN", data)["deletion"]["candidates"] == uuids(cluster, 5)


def test_of_a_cluster_with_fewer_nodes_all_are_named() -> None:
    cluster = make_cluster(size=1)
    make_member("alone")
    bind(cluster, **OLDEST)
    decided = ask(cluster, "CLUSTER_SCALE_IN", count=3)["deletion"]
    assert (decided["count"], decided["candidates"]) == (3, uuids(cluster, 1))
