"""The choice of the nodes that are removed when a cluster is scaled in."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from cluster.models import Cluster, Node, Profile
from cluster.policies.scale_in import Criteria, choose_nodes_to_remove
from tests.builders import make_cluster, make_node, make_profile, make_server

pytestmark = pytest.mark.django_db


def removed_indexes(cluster: Cluster, count: int, criteria: str = Criteria.OLDEST_FIRST, **zones: int) -> list[int]:
    """Return the indexes of the nodes chosen for removal."""
    by_uuid = {str(node.uuid): node.index for node in cluster.members()}
    return [by_uuid[uuid] for uuid in choose_nodes_to_remove(cluster.members(), count, criteria, zones)]


def change(cluster: Cluster, index: int, /, **columns: object) -> None:
    assert Node.objects.filter(cluster=cluster, index=index).update(**columns)


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster(size=4)


def test_oldest_first_removes_the_oldest_nodes(cluster: Cluster) -> None:
    change(cluster, 3, created_at=timezone.now() - timedelta(days=1))
    assert removed_indexes(cluster, 2) == [3, 1]


def test_youngest_first_removes_the_youngest_nodes(cluster: Cluster) -> None:
    change(cluster, 2, created_at=timezone.now() + timedelta(days=1))
    assert removed_indexes(cluster, 2, "YOUNGEST_FIRST") == [2, 4]


def test_oldest_profile_first_removes_nodes_of_the_oldest_profile(cluster: Cluster) -> None:
    old = make_profile("old")
    Profile.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=1))
    change(cluster, 4, profile=old)
    assert removed_indexes(cluster, 3, "OLDEST_PROFILE_FIRST") == [4, 1, 2]


def test_nodes_of_equal_age_are_removed_in_the_order_of_their_index(cluster: Cluster) -> None:
    Node.objects.update(created_at=timezone.now())
    change(cluster, 4, index=0)
    assert removed_indexes(cluster, 2) == [0, 1]


def test_random_choice_removes_each_node_at_most_once(cluster: Cluster) -> None:
    assert set(removed_indexes(cluster, 4, "RANDOM")) == {1, 2, 3, 4}


@pytest.mark.parametrize("criteria", Criteria)
@pytest.mark.parametrize("columns", [{"status": "ERROR"}, {"status": "WARNING"}, {"tainted": True}])
def test_unhealthy_and_tainted_nodes_are_removed_first(
    cluster: Cluster, columns: dict[str, object], criteria: Criteria
) -> None:
    change(cluster, 2, status="INIT")
    change(cluster, 3, **columns)
    assert removed_indexes(cluster, 2, criteria) == [3, 2]


def test_number_of_removed_nodes_is_limited_by_the_size_of_the_cluster(cluster: Cluster) -> None:
    assert removed_indexes(cluster, 9) == [1, 2, 3, 4]


def test_counts_per_zone_are_completed_with_nodes_of_other_zones(cluster: Cluster) -> None:
    node = make_node(zone="east")
    change(cluster, 2, physical_id=make_server(node=node).uuid)
    change(cluster, 3, data={"placement": {"zone": "west"}})
    change(cluster, 4, data={"placement": {"zone": "west"}})
    assert removed_indexes(cluster, 2, east=1, west=1) == [2, 3]
    assert removed_indexes(cluster, 3, east=2, west=1) == [2, 3, 1]


@pytest.mark.parametrize("zones", [{}, {"east": 2}])
def test_choice_uses_one_query(
    cluster: Cluster, zones: dict[str, int], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        choose_nodes_to_remove(cluster.members(), 3, Criteria.OLDEST_FIRST, zones)
