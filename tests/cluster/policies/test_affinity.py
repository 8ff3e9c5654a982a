"""The affinity policy distributes nodes over hosts."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from cluster.models import Cluster, ComputeNode
from cluster.policies.base import PolicyRefused
from tests.builders import make_binding, make_cluster, make_node
from tests.cluster.policies.placed_clusters import cluster_on, hosts_in
from tests.cluster.policies.policy_checks import check

pytestmark = pytest.mark.django_db

SOFT = {"servergroup": {"policies": "soft-anti-affinity"}}


def bind(cluster: Cluster, **spec: Any) -> None:
    make_binding(cluster, "senlin.policy.affinity-1.0", spec)


def hosts(cluster: Cluster, count: int) -> list[str]:
    """Return the hosts chosen for ``count`` new nodes."""
    placement = check(cluster, "CLUSTER_SCALE_OUT", count=count)["placement"]
    assert placement["count"] == count
    return [one["host"] for one in placement["placements"]]


def test_new_nodes_are_placed_on_different_hosts() -> None:
    one, *_ = hosts_in("az1", "az1", "az1")
    cluster = cluster_on(one)
    bind(cluster)
    assert hosts(cluster, 2) == ["az1-2", "az1-3"]


def test_placement_is_refused_if_there_are_too_few_hosts() -> None:
    one, _ = hosts_in("az1", "az1")
    cluster = cluster_on(one)
    bind(cluster)
    with pytest.raises(PolicyRefused, match="no feasible plan to handle all nodes: no host that is enabled and up"):
        check(cluster, "CLUSTER_SCALE_OUT", count=2)


def test_soft_anti_affinity_chooses_the_host_with_the_fewest_nodes() -> None:
    one, two = hosts_in("az1", "az1")
    cluster = cluster_on(one, one, two)
    bind(cluster, **SOFT)
    assert hosts(cluster, 4) == ["az1-2", "az1-1", "az1-2", "az1-1"]


def test_soft_anti_affinity_prefers_the_host_with_the_most_capacity() -> None:
    make_node("small")
    make_node("large", vcpus=100, memory=10**6, disk=10**4)
    cluster = make_cluster()
    bind(cluster, **SOFT)
    assert hosts(cluster, 1) == ["large"]


def test_number_of_nodes_of_a_host_is_limited_by_its_capacity() -> None:
    make_node("full", vcpus=1)
    make_node("free")
    cluster = make_cluster()
    bind(cluster, **SOFT)
    assert sorted(hosts(cluster, 4)) == ["free", "free", "free", "full"]
    with pytest.raises(PolicyRefused, match="no host that is enabled and up has capacity"):
        check(cluster, "CLUSTER_SCALE_OUT", count=18)


@pytest.mark.parametrize("columns", [{"status": "disabled"}, {"state": "down"}])
def test_disabled_and_down_hosts_are_not_chosen(columns: dict[str, Any]) -> None:
    one, _ = hosts_in("az1", "az1")
    ComputeNode.objects.filter(pk=one.pk).update(**columns)
    cluster = make_cluster()
    bind(cluster)
    assert hosts(cluster, 1) == ["az1-2"]


def test_hosts_are_chosen_from_the_availability_zone_of_the_policy() -> None:
    hosts_in("az1", "az2", "az1")
    cluster = make_cluster()
    bind(cluster, availability_zone="az2")
    assert hosts(cluster, 1) == ["az2-2"]
    with pytest.raises(PolicyRefused, match="no host of az2 that is enabled and up"):
        check(cluster, "CLUSTER_SCALE_OUT", count=2)


def test_hosts_are_chosen_from_the_zones_of_the_placement_policy() -> None:
    hosts_in("az1", "az2", "az2")
    cluster = make_cluster()
    bind(cluster)
    make_binding(cluster, "senlin.policy.zone_placement-1.0", {"zones": [{"name": "az2"}, {"name": "az1"}]})
    assert check(cluster, "CLUSTER_SCALE_OUT", count=3)["placement"]["placements"] == [
        {"zone": "az2", "host": "az2-2"},
        {"zone": "az1", "host": "az1-1"},
        {"zone": "az2", "host": "az2-3"},
    ]


def test_zone_placement_after_the_choice_of_hosts_is_refused() -> None:
    hosts_in("az1", "az2")
    cluster = make_cluster()
    bind(cluster)
    zones = {"zones": [{"name": "az2"}, {"name": "az1"}]}
    make_binding(cluster, "senlin.policy.zone_placement-1.0", zones, priority=900)
    with pytest.raises(PolicyRefused, match="their hosts were chosen before their zones"):
        check(cluster, "CLUSTER_SCALE_OUT", count=1)


def test_resize_that_removes_nodes_needs_no_placement() -> None:
    cluster = make_cluster(size=2)
    bind(cluster)
    assert "placement" not in check(cluster, "CLUSTER_RESIZE", {"deletion": {"count": 1}})


@pytest.mark.parametrize("count", [1, 10])
def test_query_count_does_not_depend_on_the_number_of_nodes(
    count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    hosts_in(*["az1"] * 10)
    cluster = make_cluster()
    bind(cluster)
    with django_assert_num_queries(5):
        check(cluster, "CLUSTER_SCALE_OUT", count=count)
