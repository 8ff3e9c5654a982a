"""The affinity policy spreads nodes over hosts."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from cluster.models import Cluster, ComputeNode
from cluster.policies.base import PolicyRefused
from tests.builders import make_binding, make_cluster, make_node
from tests.cluster.policies.asking import ask
from tests.cluster.policies.placed import cluster_on, hosts_in

pytestmark = pytest.mark.django_db

SOFTLY = {"servergroup": {"policies": "soft-anti-affinity"}}


def bind(cluster: Cluster, **spec: Any) -> None:
    make_binding(cluster, "senlin.policy.affinity-1.0", spec)


def hosts(cluster: Cluster, count: int) -> list[str]:
    """Return the hosts of so many new nodes, as they are handed to these."""
    placement = ask(cluster, "CLUSTER_SCALE_OUT", count=count)["placement"]
    assert placement["count"] == count
    return [one["host"] for one in placement["placements"]]


def test_no_two_nodes_are_on_one_host() -> None:
    one, *_ = hosts_in("az1", "az1", "az1")
    cluster = cluster_on(one)
    bind(cluster)
    assert hosts(cluster, 2) == ["az1-2", "az1-3"]


def test_where_there_are_too_few_hosts_it_is_refused() -> None:
    one, _ = hosts_in("az1", "az1")
    cluster = cluster_on(one)
    bind(cluster)
    with pytest.raises(PolicyRefused, match="no feasible plan to handle all nodes: no host that is enabled and up"):
        ask(cluster, "CLUSTER_SCALE_OUT", count=2)


def test_softly_apart_the_host_with_the_fewest_gets_the_next() -> None:
    one, two = hosts_in("az1", "az1")
    cluster = cluster_on(one, one, two)
    bind(cluster, **SOFTLY)
    assert hosts(cluster, 4) == ["az1-2", "az1-1", "az1-2", "az1-1"]


def test_of_hosts_with_as_many_nodes_the_one_with_the_most_capacity_comes_first() -> None:
    make_node("small")
    make_node("large", vcpus=100, memory=10**6, disk=10**4)
    cluster = make_cluster()
    bind(cluster, **SOFTLY)
    assert hosts(cluster, 1) == ["large"]


def test_a_host_gets_no_more_nodes_than_it_has_capacity_for() -> None:
    make_node("full", vcpus=1)
    make_node("free")
    cluster = make_cluster()
    bind(cluster, **SOFTLY)
    assert sorted(hosts(cluster, 4)) == ["free", "free", "free", "full"]
    with pytest.raises(PolicyRefused, match="no host that is enabled and up has capacity"):
        ask(cluster, "CLUSTER_SCALE_OUT", count=18)


@pytest.mark.parametrize("columns", [{"status": "disabled"}, {"state": "down"}])
def test_hosts_that_take_no_servers_are_left_out(columns: dict[str, Any]) -> None:
    one, _ = hosts_in("az1", "az1")
    ComputeNode.objects.filter(pk=one.pk).update(**columns)
    cluster = make_cluster()
    bind(cluster)
    assert hosts(cluster, 1) == ["az1-2"]


def test_only_hosts_of_its_zone_are_taken() -> None:
    hosts_in("az1", "az2", "az1")
    cluster = make_cluster()
    bind(cluster, availability_zone="az2")
    assert hosts(cluster, 1) == ["az2-2"]
    with pytest.raises(PolicyRefused, match="no host of az2 that is enabled and up"):
        ask(cluster, "CLUSTER_SCALE_OUT", count=2)


def test_hosts_are_in_the_zones_that_were_decided_before() -> None:
    hosts_in("az1", "az2", "az2")
    cluster = make_cluster()
    bind(cluster)
    make_binding(cluster, "senlin.policy.zone_placement-1.0", {"zones": [{"name": "az2"}, {"name": "az1"}]})
    assert ask(cluster, "CLUSTER_SCALE_OUT", count=3)["placement"]["placements"] == [
        {"zone": "az2", "host": "az2-2"},
        {"zone": "az1", "host": "az1-1"},
        {"zone": "az2", "host": "az2-3"},
    ]


def test_zones_are_not_chosen_after_hosts() -> None:
    hosts_in("az1", "az2")
    cluster = make_cluster()
    bind(cluster)
    zones = {"zones": [{"name": "az2"}, {"name": "az1"}]}
    make_binding(cluster, "senlin.policy.zone_placement-1.0", zones, priority=900)
    with pytest.raises(PolicyRefused, match="their hosts were chosen before their zones"):
        ask(cluster, "CLUSTER_SCALE_OUT", count=1)


def test_a_resize_that_removes_nodes_is_none_of_its_business() -> None:
    cluster = make_cluster(size=2)
    bind(cluster)
    assert "placement" not in ask(cluster, "CLUSTER_RESIZE", {"deletion": {"count": 1}})


@pytest.mark.parametrize("count", [1, 10])
def test_the_number_of_queries_does_not_grow_with_the_number_of_nodes(
    count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    hosts_in(*["az1"] * 10)
    cluster = make_cluster()
    bind(cluster)
    with django_assert_num_queries(5):
        ask(cluster, "CLUSTER_SCALE_OUT", count=count)
