"""Which members of a cluster are the first to go when it shrinks."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from cluster.models import Cluster, Node, Profile
from cluster.policies.scale_in import Criteria, choose_nodes_to_remove
from tests.builders import make_cluster, make_node, make_profile, make_server

pytestmark = pytest.mark.django_db


def names(cluster: Cluster, count: int, criteria: str = Criteria.OLDEST_FIRST, **zones: int) -> list[int]:
    """Return the indexes of those that go."""
    by_uuid = {str(node.uuid): node.index for node in cluster.members()}
    return [by_uuid[uuid] for uuid in choose_nodes_to_remove(cluster.members(), count, criteria, zones)]


def change(cluster: Cluster, index: int, /, **columns: object) -> None:
    assert Node.objects.filter(cluster=cluster, index=index).update(**columns)


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster(size=4)


def test_the_oldest_go_first(cluster: Cluster) -> None:
    change(cluster, 3, created_at=timezone.now() - timedelta(days=1))
    assert names(cluster, 2) == [3, 1]


def test_the_youngest_go_first(cluster: Cluster) -> None:
    change(cluster, 2, created_at=timezone.now() + timedelta(days=1))
    assert names(cluster, 2, "YOUNGEST_FIRST") == [2, 4]


def test_those_of_the_oldest_profile_go_first(cluster: Cluster) -> None:
    old = make_profile("old")
    Profile.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=1))
    change(cluster, 4, profile=old)
    assert names(cluster, 3, "OLDEST_PROFILE_FIRST") == [4, 1, 2]


def test_of_two_that_are_equal_the_one_that_joined_first_goes(cluster: Cluster) -> None:
    Node.objects.update(created_at=timezone.now())
    change(cluster, 4, index=0)
    assert names(cluster, 2) == [0, 1]


def test_at_random_some_go_and_none_twice(cluster: Cluster) -> None:
    assert set(names(cluster, 4, "RANDOM")) == {1, 2, 3, 4}


@pytest.mark.parametrize("criteria", Criteria)
@pytest.mark.parametrize("columns", [{"status": "ERROR"}, {"status": "WARNING"}, {"tainted": True}])
def test_the_unhealthy_and_the_tainted_go_before_all_others(
    cluster: Cluster, columns: dict[str, object], criteria: Criteria
) -> None:
    change(cluster, 2, status="INIT")
    change(cluster, 3, **columns)
    assert names(cluster, 2, criteria) == [3, 2]


def test_no_more_go_than_there_are(cluster: Cluster) -> None:
    assert names(cluster, 9) == [1, 2, 3, 4]


def test_so_many_go_of_each_zone_and_of_others_where_a_zone_has_no_more(cluster: Cluster) -> None:
    node = make_node(zone="east")
    change(cluster, 2, physical_id=make_server(node=node).uuid)
    change(cluster, 3, data={"placement": {"zone": "west"}})
    change(cluster, 4, data={"placement": {"zone": "west"}})
    assert names(cluster, 2, east=1, west=1) == [2, 3]
    assert names(cluster, 3, east=2, west=1) == [2, 3, 1]


@pytest.mark.parametrize("zones", [{}, {"east": 2}])
def test_a_choice_is_one_query(
    cluster: Cluster, zones: dict[str, int], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        choose_nodes_to_remove(cluster.members(), 3, Criteria.OLDEST_FIRST, zones)
