"""The load-balancing policy keeps the servers of active nodes in a load-balancer pool."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from cluster.drivers.base import CloudBusy, cloud
from cluster.models import BalancingMember, BalancingPool, Cluster, ComputeNode, Draining, Node, Server
from cluster.policies.base import PolicyRefused, When
from cluster.policies.checking import load_policy
from cluster.policies.load_balancing import POOLED
from tests.builders import make_balancing_pool, make_binding, make_node, make_server
from tests.cluster.policies.placed_clusters import cluster_on
from tests.cluster.policies.policy_checks import check

pytestmark = pytest.mark.django_db

AFTER = When.AFTER


@pytest.fixture
def host() -> ComputeNode:
    return make_node()


@pytest.fixture
def cluster(host: ComputeNode) -> Cluster:
    """A cluster of three ACTIVE nodes with servers, none of them in a pool."""
    return cluster_on(host, host, host)


def bind(cluster: Cluster, *members: Server, **spec: Any) -> Any:
    """Bind the policy to a cluster, and create a pool with these members."""
    make_balancing_pool("web", *members)
    spec = {"pool": {"id": "web", "protocol_port": 8080}, **spec}
    return make_binding(cluster, "senlin.policy.loadbalance-1.3", spec)


def servers(cluster: Cluster, *indexes: int) -> list[Server]:
    nodes = [cluster.members().get(index=index) for index in indexes]
    return [Server.objects.get(uuid=node.physical_id) for node in nodes]


def uuids(cluster: Cluster, *indexes: int) -> list[str]:
    return [str(cluster.members().get(index=index).uuid) for index in indexes]


def deletion(cluster: Cluster, *indexes: int) -> dict[str, Any]:
    return {"deletion": {"count": len(indexes), "candidates": uuids(cluster, *indexes)}}


def in_pool() -> list[str]:
    return sorted(BalancingMember.objects.values_list("server__name", flat=True))


def names(cluster: Cluster, *indexes: int) -> list[str]:
    return [f"{cluster.name}-{index}" for index in indexes]


@pytest.mark.parametrize("times", [1, 2])
def test_attaching_adds_all_active_nodes_to_the_pool(cluster: Cluster, times: int) -> None:
    Node.objects.filter(index=2).update(status="ERROR")
    policy = load_policy(bind(cluster))
    for _ in range(times):
        policy.attach(cluster)
    assert in_pool() == names(cluster, 1, 3)
    assert set(BalancingMember.objects.values_list("port", "weight")) == {(8080, 1)}


@pytest.mark.parametrize("times", [1, 2])
def test_detaching_removes_the_nodes_and_keeps_other_members(cluster: Cluster, host: ComputeNode, times: int) -> None:
    policy = load_policy(bind(cluster, make_server("another", host)))
    policy.attach(cluster)
    for _ in range(times):
        policy.detach(cluster)
    assert in_pool() == ["another"]
    assert not Node.objects.exclude(data={}).exists()


@pytest.mark.parametrize(
    "action_type",
    [
        *("CLUSTER_SCALE_OUT", "CLUSTER_ADD_NODES", "CLUSTER_RESIZE"),
        *("CLUSTER_RECOVER", "CLUSTER_UPDATE", "CLUSTER_CHECK"),
    ],
)
def test_active_nodes_are_added_after_an_action(cluster: Cluster, action_type: str) -> None:
    bind(cluster, *servers(cluster, 1))
    Node.objects.filter(index=3).update(status="ERROR")
    check(cluster, action_type, when=AFTER)
    assert in_pool() == names(cluster, 1, 2)


def test_detaching_removes_servers_of_deleted_nodes_without_draining(cluster: Cluster) -> None:
    policy = load_policy(bind(cluster, draining_timeout=600))
    policy.attach(cluster)
    BalancingMember.objects.update(connections=1)
    Node.objects.update(deleted_at=timezone.now())
    policy.detach(cluster)
    assert in_pool() == []


def test_changed_weight_of_a_member_is_kept(cluster: Cluster) -> None:
    bind(cluster, *servers(cluster, 1))
    BalancingMember.objects.update(weight=7)
    check(cluster, "CLUSTER_SCALE_OUT", when=AFTER)
    assert sorted(BalancingMember.objects.values_list("weight", flat=True)) == [1, 1, 7]


def test_draining_member_gets_its_weight_back_after_an_action(cluster: Cluster) -> None:
    policy = load_policy(bind(cluster))
    policy.attach(cluster)
    BalancingMember.objects.update(weight=0)
    check(cluster, "CLUSTER_RECOVER", when=AFTER)
    assert set(BalancingMember.objects.values_list("weight", flat=True)) == {1}


def test_candidates_are_removed_from_the_pool_before_scaling_in(cluster: Cluster) -> None:
    load_policy(bind(cluster)).attach(cluster)
    check(cluster, "CLUSTER_SCALE_IN", deletion(cluster, 1, 3))
    assert in_pool() == names(cluster, 2)


def test_excluded_candidates_stay_in_the_pool(cluster: Cluster) -> None:
    load_policy(bind(cluster)).attach(cluster)
    check(cluster, "CLUSTER_SCALE_IN", deletion(cluster, 1, 3), left_out=uuids(cluster, 3))
    assert in_pool() == names(cluster, 2, 3)


def test_candidates_that_left_the_cluster_stay_in_the_pool(cluster: Cluster, host: ComputeNode) -> None:
    bind(cluster, *servers(cluster, 1))
    candidates = deletion(cluster, 1)
    Node.objects.filter(index=1).update(cluster=None)
    check(cluster, "CLUSTER_DEL_NODES", candidates)
    assert len(in_pool()) == 1


def test_action_waits_while_all_candidates_drain_in_parallel(cluster: Cluster) -> None:
    load_policy(bind(cluster, draining_timeout=600)).attach(cluster)
    BalancingMember.objects.update(connections=1)
    with pytest.raises(CloudBusy) as busy:
        check(cluster, "CLUSTER_SCALE_IN", deletion(cluster, 1, 3))
    assert busy.value.until == Draining.objects.latest("since").since + timedelta(seconds=600)
    assert list(BalancingMember.objects.order_by("pk").values_list("weight", flat=True)) == [0, 1, 0]
    BalancingMember.objects.update(connections=0)
    check(cluster, "CLUSTER_SCALE_IN", deletion(cluster, 1, 3))
    assert in_pool() == names(cluster, 2)


def test_candidates_are_removed_after_the_draining_timeout(cluster: Cluster) -> None:
    load_policy(bind(cluster, draining_timeout=600)).attach(cluster)
    BalancingMember.objects.update(connections=1)
    with pytest.raises(CloudBusy):
        check(cluster, "CLUSTER_SCALE_IN", deletion(cluster, 1))
    Draining.objects.update(since=timezone.now() - timedelta(seconds=601))
    check(cluster, "CLUSTER_SCALE_IN", deletion(cluster, 1))
    assert in_pool() == names(cluster, 2, 3)


def test_node_is_removed_from_the_pool_before_its_deletion(cluster: Cluster) -> None:
    load_policy(bind(cluster)).attach(cluster)
    check(cluster, "NODE_DELETE", node=cluster.members().get(index=2))
    assert in_pool() == names(cluster, 1, 3)


def test_node_required_by_the_minimum_size_stays_in_the_pool(cluster: Cluster) -> None:
    load_policy(bind(cluster)).attach(cluster)
    cluster.min_size = 3
    check(cluster, "NODE_DELETE", node=cluster.members().get(index=2))
    assert len(in_pool()) == 3


def test_node_is_added_to_the_pool_after_its_creation(cluster: Cluster) -> None:
    bind(cluster)
    check(cluster, "NODE_CREATE", when=AFTER, node=cluster.members().get(index=2))
    assert in_pool() == names(cluster, 2)


def test_replaced_server_of_a_node_is_added_to_the_pool(cluster: Cluster, host: ComputeNode) -> None:
    load_policy(bind(cluster)).attach(cluster)
    [former] = servers(cluster, 1)
    cloud().delete_server(str(former.uuid))
    another = make_server("another", host)
    Node.objects.filter(index=1).update(physical_id=another.uuid)
    check(cluster, "CLUSTER_RECOVER", when=AFTER)
    assert in_pool() == [*names(cluster, 2, 3), "another"]


def test_refusal_by_the_load_balancer_raises_policy_refused(cluster: Cluster) -> None:
    policy = load_policy(bind(cluster, pool={"id": "nowhere"}))
    with pytest.raises(PolicyRefused, match="Load-balancer pool nowhere not found"):
        policy.attach(cluster)


def test_detaching_from_a_deleted_pool_clears_the_data_of_the_nodes(cluster: Cluster) -> None:
    policy = load_policy(bind(cluster))
    policy.attach(cluster)
    BalancingPool.objects.all().delete()
    policy.detach(cluster)
    assert not Node.objects.filter(data__has_key=POOLED).exists()


def test_deciding_a_plan_does_not_change_the_pool(cluster: Cluster) -> None:
    load_policy(bind(cluster)).attach(cluster)
    check(cluster, "CLUSTER_SCALE_IN", deletion(cluster, 1), deciding_only=True)
    assert len(in_pool()) == 3
