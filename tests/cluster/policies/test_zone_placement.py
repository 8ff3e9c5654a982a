"""The placement policy distributes nodes over availability zones."""

from typing import Any

import pytest

from cluster.models import Cluster, ComputeNode, Node
from cluster.policies.base import PolicyRefused
from tests.builders import make_binding, make_cluster
from tests.cluster.policies.placed_clusters import cluster_on, hosts_in
from tests.cluster.policies.policy_checks import check

pytestmark = pytest.mark.django_db


def bind(cluster: Cluster, **weights: int) -> None:
    zones = [{"name": name, "weight": weight} for name, weight in weights.items()]
    make_binding(cluster, "senlin.policy.zone_placement-1.0", {"zones": zones})


def test_new_nodes_are_distributed_evenly() -> None:
    hosts_in("az1", "az2")
    cluster = make_cluster()
    bind(cluster, az1=100, az2=100)
    data = check(cluster, "CLUSTER_SCALE_OUT", count=3)
    assert data["creation"] == {"count": 3, "zones": {"az1": 2, "az2": 1}}
    assert data["placement"] == {"count": 3, "placements": [{"zone": "az1"}, {"zone": "az2"}, {"zone": "az1"}]}


def test_new_nodes_are_distributed_by_the_weights_of_the_zones() -> None:
    hosts_in("az1", "az2")
    cluster = make_cluster()
    bind(cluster, az1=1, az2=3)
    assert check(cluster, "CLUSTER_SCALE_OUT", count=8)["creation"]["zones"] == {"az2": 6, "az1": 2}


def test_existing_nodes_count() -> None:
    az1, _ = hosts_in("az1", "az2")
    cluster = cluster_on(az1, az1)
    bind(cluster, az1=1, az2=1)
    assert check(cluster, "CLUSTER_SCALE_OUT", count=4)["creation"]["zones"] == {"az2": 3, "az1": 1}


def test_nodes_without_a_server_count_in_their_decided_zone() -> None:
    hosts_in("az1", "az2")
    cluster = make_cluster(size=2)
    Node.objects.update(data={"placement": {"zone": "az1"}})
    bind(cluster, az1=1, az2=1)
    assert check(cluster, "CLUSTER_SCALE_OUT", count=2)["creation"]["zones"] == {"az2": 2}


def test_created_node_is_placed() -> None:
    az1, _ = hosts_in("az1", "az2")
    cluster = cluster_on(az1)
    bind(cluster, az1=1, az2=1)
    assert check(cluster, "NODE_CREATE")["placement"]["placements"] == [{"zone": "az2"}]


@pytest.mark.parametrize("columns", [{"status": "disabled"}, {"state": "down"}])
def test_zones_without_an_enabled_host_are_not_chosen(columns: dict[str, Any]) -> None:
    az1, _ = hosts_in("az1", "az2")
    ComputeNode.objects.filter(pk=az1.pk).update(**columns)
    cluster = make_cluster()
    bind(cluster, az1=1, az2=1)
    assert check(cluster, "CLUSTER_SCALE_OUT", count=2)["creation"]["zones"] == {"az2": 2}


def test_placement_is_refused_if_no_zone_has_an_enabled_host() -> None:
    hosts_in("az1")
    cluster = make_cluster()
    bind(cluster, az2=1, az3=1)
    with pytest.raises(PolicyRefused, match="no feasible plan to handle all nodes: no host of az2, az3 is enabled"):
        check(cluster, "CLUSTER_SCALE_OUT", count=2)


def test_removal_leaves_an_even_distribution() -> None:
    az1, az2 = hosts_in("az1", "az2")
    cluster = cluster_on(az1, az1, az1, az1, az2, az2)
    bind(cluster, az1=1, az2=1)
    assert check(cluster, "CLUSTER_SCALE_IN", count=4)["deletion"] == {"count": 4, "zones": {"az1": 3, "az2": 1}}


def test_unhealthy_nodes_are_removed_first_in_any_zone() -> None:
    az1, az2 = hosts_in("az1", "az2")
    cluster = cluster_on(az1, az1, az1, az2)
    Node.objects.filter(index=4).update(status="ERROR")
    bind(cluster, az1=1, az2=1)
    assert check(cluster, "CLUSTER_SCALE_IN", count=2)["deletion"]["zones"] == {"az2": 1, "az1": 1}


def test_nodes_in_other_zones_are_removed_first() -> None:
    az1, az2, az3 = hosts_in("az1", "az2", "az3")
    cluster = cluster_on(az1, az1, az2, az3)
    bind(cluster, az1=1, az2=1)
    assert check(cluster, "CLUSTER_SCALE_IN", count=2)["deletion"]["zones"] == {"az3": 1, "az1": 1}


def test_number_of_removed_nodes_is_limited_by_the_size_of_the_cluster() -> None:
    cluster = cluster_on(*hosts_in("az1", "az2"))
    bind(cluster, az1=1, az2=1)
    assert check(cluster, "CLUSTER_SCALE_IN", count=9)["deletion"] == {"count": 9, "zones": {"az1": 1, "az2": 1}}


def test_requested_candidates_have_no_zones() -> None:
    cluster = cluster_on(*hosts_in("az1", "az2"))
    bind(cluster, az1=1, az2=1)
    data = {"deletion": {"count": 1, "candidates": ["a node"]}}
    assert "zones" not in check(cluster, "CLUSTER_SCALE_IN", data)["deletion"]
