"""The deletion policy decides which nodes are removed, and whether their servers are deleted."""

from typing import Any

import pytest

from cluster.models import Cluster, Node
from tests.builders import make_binding, make_cluster, make_member
from tests.cluster.policies.placed_clusters import cluster_on, hosts_in
from tests.cluster.policies.policy_checks import check

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
def test_candidates_are_chosen_by_the_criteria(cluster: Cluster, criteria: str, expected: tuple[int, ...]) -> None:
    bind(cluster, criteria=criteria)
    data = check(cluster, "CLUSTER_SCALE_IN", count=2)
    assert data["deletion"] == {
        "count": 2,
        "candidates": uuids(cluster, *expected),
        "destroy_after_deletion": True,
        "grace_period": 0,
        "reduce_desired_capacity": True,
    }


def test_unhealthy_nodes_are_removed_first(cluster: Cluster) -> None:
    Node.objects.filter(index=4).update(status="ERROR")
    bind(cluster, **OLDEST)
    assert check(cluster, "CLUSTER_SCALE_IN", count=2)["deletion"]["candidates"] == uuids(cluster, 4, 1)


def test_number_of_candidates_is_taken_from_the_scaling_policy(cluster: Cluster) -> None:
    bind(cluster, **OLDEST)
    make_binding(cluster, "senlin.policy.scaling-1.0", {"event": "CLUSTER_SCALE_IN", "adjustment": {"number": 3}})
    assert check(cluster, "CLUSTER_SCALE_IN")["deletion"]["candidates"] == uuids(cluster, 1, 2, 3)


def test_candidates_per_zone_are_taken_from_the_placement_policy() -> None:
    east, west = hosts_in("east", "west")
    cluster = cluster_on(east, west, west, west, east)
    bind(cluster, **OLDEST)
    make_binding(cluster, "senlin.policy.zone_placement-1.0", {"zones": [{"name": "east"}, {"name": "west"}]})
    data = check(cluster, "CLUSTER_SCALE_IN", count=3)
    assert data["deletion"]["zones"] == {"west": 2, "east": 1}
    assert set(data["deletion"]["candidates"]) == set(uuids(cluster, 1, 2, 3))


def test_number_of_candidates_of_a_resize_is_its_count(cluster: Cluster) -> None:
    bind(cluster, **OLDEST)
    data = {"deletion": {"count": 2}}
    assert check(cluster, "CLUSTER_RESIZE", data)["deletion"]["candidates"] == uuids(cluster, 1, 2)


def test_resize_that_adds_nodes_has_no_candidates(cluster: Cluster) -> None:
    bind(cluster, **OLDEST)
    assert "deletion" not in check(cluster, "CLUSTER_RESIZE", {"creation": {"count": 2}})


def test_requested_nodes_are_kept_as_candidates(cluster: Cluster) -> None:
    bind(cluster, criteria="OLDEST_FIRST", destroy_after_deletion=False, grace_period=7)
    data = {"deletion": {"count": 2, "candidates": uuids(cluster, 5, 3)}}
    decided = check(cluster, "CLUSTER_DEL_NODES", data)["deletion"]
    assert (decided["count"], decided["candidates"]) == (2, uuids(cluster, 5, 3))
    assert (decided["destroy_after_deletion"], decided["grace_period"]) == (False, 7)


def test_deleted_node_is_the_only_candidate(cluster: Cluster) -> None:
    bind(cluster, **OLDEST)
    decided = check(cluster, "NODE_DELETE", node=cluster.members().get(index=4))["deletion"]
    assert (decided["count"], decided["candidates"]) == (1, uuids(cluster, 4))


def test_deletion_of_a_node_ignores_destroy_after_deletion(cluster: Cluster) -> None:
    bind(cluster, destroy_after_deletion=False, grace_period=7)
    decided = check(cluster, "NODE_DELETE", node=cluster.members().get(index=4))["deletion"]
    assert "destroy_after_deletion" not in decided
    assert decided["grace_period"] == 7


def test_decided_candidates_are_kept(cluster: Cluster) -> None:
    bind(cluster, **OLDEST)
    data = {"deletion": {"count": 1, "candidates": uuids(cluster, 5)}}
    assert check(cluster, "CLUSTER_SCALE_IN", data)["deletion"]["candidates"] == uuids(cluster, 5)


def test_all_nodes_of_a_smaller_cluster_are_candidates() -> None:
    cluster = make_cluster(size=1)
    make_member("alone")
    bind(cluster, **OLDEST)
    decided = check(cluster, "CLUSTER_SCALE_IN", count=3)["deletion"]
    assert (decided["count"], decided["candidates"]) == (3, uuids(cluster, 1))
