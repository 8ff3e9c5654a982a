"""The load-balancing policy has the servers of nodes in a pool while they serve."""

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
from tests.cluster.policies.asking import ask
from tests.cluster.policies.placed import cluster_on

pytestmark = pytest.mark.django_db

AFTER = When.AFTER


@pytest.fixture
def host() -> ComputeNode:
    return make_node()


@pytest.fixture
def cluster(host: ComputeNode) -> Cluster:
    """Three ACTIVE nodes with servers, none of them in a pool."""
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
def test_when_it_is_attached_all_active_nodes_are_put_in(cluster: Cluster, times: int) -> None:
    Node.objects.filter(index=2).update(status="ERROR")
    policy = load_policy(bind(cluster))
    for _ in range(times):
        policy.attach(cluster)
    assert in_pool() == names(cluster, 1, 3)
    assert set(BalancingMember.objects.values_list("port", "weight")) == {(8080, 1)}


@pytest.mark.parametrize("times", [1, 2])
def test_when_it_is_detached_all_are_taken_out_and_others_stay(
    cluster: Cluster, host: ComputeNode, times: int
) -> None:
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
def test_after_growing_those_that_are_active_are_put_in(cluster: Cluster, action_type: str) -> None:
    bind(cluster, *servers(cluster, 1))
    Node.objects.filter(index=3).update(status="ERROR")
    ask(cluster, action_type, when=AFTER)
    assert in_pool() == names(cluster, 1, 2)


def test_when_it_is_detached_servers_of_nodes_that_were_deleted_are_taken_out_at_once(cluster: Cluster) -> None:
    policy = load_policy(bind(cluster, draining_timeout=600))
    policy.attach(cluster)
    BalancingMember.objects.update(connections=1)
    Node.objects.update(deleted_at=timezone.now())
    policy.detach(cluster)
    assert in_pool() == []


def test_a_member_that_somebody_gave_another_weight_keeps_it(cluster: Cluster) -> None:
    bind(cluster, *servers(cluster, 1))
    BalancingMember.objects.update(weight=7)
    ask(cluster, "CLUSTER_SCALE_OUT", when=AFTER)
    assert sorted(BalancingMember.objects.values_list("weight", flat=True)) == [1, 1, 7]


def test_one_that_was_about_to_leave_gets_connections_again(cluster: Cluster) -> None:
    policy = load_policy(bind(cluster))
    policy.attach(cluster)
    BalancingMember.objects.update(weight=0)
    ask(cluster, "CLUSTER_RECOVER", when=AFTER)
    assert set(BalancingMember.objects.values_list("weight", flat=True)) == {1}


def test_before_shrinking_the_candidates_are_taken_out(cluster: Cluster) -> None:
    load_policy(bind(cluster)).attach(cluster)
    ask(cluster, "CLUSTER_SCALE_IN", deletion(cluster, 1, 3))
    assert in_pool() == names(cluster, 2)


def test_what_people_left_out_stays_in(cluster: Cluster) -> None:
    load_policy(bind(cluster)).attach(cluster)
    ask(cluster, "CLUSTER_SCALE_IN", deletion(cluster, 1, 3), left_out=uuids(cluster, 3))
    assert in_pool() == names(cluster, 2, 3)


def test_candidates_that_are_no_members_stay_in(cluster: Cluster, host: ComputeNode) -> None:
    bind(cluster, *servers(cluster, 1))
    candidates = deletion(cluster, 1)
    Node.objects.filter(index=1).update(cluster=None)
    ask(cluster, "CLUSTER_DEL_NODES", candidates)
    assert len(in_pool()) == 1


def test_while_they_have_connections_it_is_waited_for_all_of_them_at_once(cluster: Cluster) -> None:
    load_policy(bind(cluster, draining_timeout=600)).attach(cluster)
    BalancingMember.objects.update(connections=1)
    with pytest.raises(CloudBusy) as busy:
        ask(cluster, "CLUSTER_SCALE_IN", deletion(cluster, 1, 3))
    assert busy.value.until == Draining.objects.latest("since").since + timedelta(seconds=600)
    assert list(BalancingMember.objects.order_by("pk").values_list("weight", flat=True)) == [0, 1, 0]
    BalancingMember.objects.update(connections=0)
    ask(cluster, "CLUSTER_SCALE_IN", deletion(cluster, 1, 3))
    assert in_pool() == names(cluster, 2)


def test_when_their_time_is_over_connections_are_cut(cluster: Cluster) -> None:
    load_policy(bind(cluster, draining_timeout=600)).attach(cluster)
    BalancingMember.objects.update(connections=1)
    with pytest.raises(CloudBusy):
        ask(cluster, "CLUSTER_SCALE_IN", deletion(cluster, 1))
    Draining.objects.update(since=timezone.now() - timedelta(seconds=601))
    ask(cluster, "CLUSTER_SCALE_IN", deletion(cluster, 1))
    assert in_pool() == names(cluster, 2, 3)


def test_a_single_node_is_taken_out_before_it_is_deleted(cluster: Cluster) -> None:
    load_policy(bind(cluster)).attach(cluster)
    ask(cluster, "NODE_DELETE", node=cluster.members().get(index=2))
    assert in_pool() == names(cluster, 1, 3)


def test_a_node_that_the_cluster_cannot_do_without_stays_in(cluster: Cluster) -> None:
    load_policy(bind(cluster)).attach(cluster)
    cluster.min_size = 3
    ask(cluster, "NODE_DELETE", node=cluster.members().get(index=2))
    assert len(in_pool()) == 3


def test_a_single_node_is_put_in_once_it_is_there(cluster: Cluster) -> None:
    bind(cluster)
    ask(cluster, "NODE_CREATE", when=AFTER, node=cluster.members().get(index=2))
    assert in_pool() == names(cluster, 2)


def test_a_node_that_got_another_server_has_that_one_in_the_pool(cluster: Cluster, host: ComputeNode) -> None:
    load_policy(bind(cluster)).attach(cluster)
    [former] = servers(cluster, 1)
    cloud().delete_server(str(former.uuid))
    another = make_server("another", host)
    Node.objects.filter(index=1).update(physical_id=another.uuid)
    ask(cluster, "CLUSTER_RECOVER", when=AFTER)
    assert in_pool() == [*names(cluster, 2, 3), "another"]


def test_what_the_load_balancer_refuses_is_refused(cluster: Cluster) -> None:
    policy = load_policy(bind(cluster, pool={"id": "nowhere"}))
    with pytest.raises(PolicyRefused, match="Load-balancer pool nowhere not found"):
        policy.attach(cluster)


def test_a_pool_that_is_gone_holds_none_of_the_servers(cluster: Cluster) -> None:
    policy = load_policy(bind(cluster))
    policy.attach(cluster)
    BalancingPool.objects.all().delete()
    policy.detach(cluster)
    assert not Node.objects.filter(data__has_key=POOLED).exists()


def test_when_plans_are_made_it_is_not_applied(cluster: Cluster) -> None:
    load_policy(bind(cluster)).attach(cluster)
    ask(cluster, "CLUSTER_SCALE_IN", deletion(cluster, 1), deciding_only=True)
    assert len(in_pool()) == 3
