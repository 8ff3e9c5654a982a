"""Actions on nodes whose servers are members of the pool of a load balancer."""

from typing import Any

import pytest

from actions.models import Action
from cluster.drivers.embedded.balancing import EmbeddedBalancer
from cluster.models import BalancingMember, BalancingPool, Cluster, ComputeNode, Node
from cluster.policies.checking import load_policy
from plans.applier.applier import Applier
from plans.models import ActionPlan
from plans.operations.nodes import delete_node
from tests.actions.types.clusters.builders import proposed
from tests.actions.types.clusters.test_cluster_growth import run
from tests.builders import make_balancing_pool, make_binding, make_node
from tests.cluster.policies.placed_clusters import cluster_on
from tests.plans.inline import InlineExecutor, run_waiting

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster of two nodes whose servers are in a pool."""
    host = make_node()
    made = cluster_on(host, host)
    make_balancing_pool("web")
    binding = make_binding(made, "senlin.policy.loadbalance-1.3", {"pool": {"id": "web"}, "draining_timeout": 600})
    load_policy(binding).attach(made)
    return made


def test_node_is_deleted_after_its_connections_have_ended(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The retries while connections are open do not count for the maximum number of retries."""
    BalancingMember.objects.update(connections=5)
    take_stock = EmbeddedBalancer.drain

    def end_one(self: EmbeddedBalancer, *arguments: Any) -> Any:
        self.close_connections("web", 1)
        return take_stock(self, *arguments)

    monkeypatch.setattr(EmbeddedBalancer, "drain", end_one)
    delete_node(cluster.members().get(index=1))
    run_waiting()
    action = Action.objects.get()
    assert (action.state, action.retries, action.attempt) == ("SUCCEEDED", 0, 5)
    [left] = BalancingMember.objects.all()
    assert left.server.uuid == cluster.members().get().physical_id


def test_node_is_deleted_if_its_pool_was_deleted(cluster: Cluster) -> None:
    BalancingPool.objects.all().soft_delete()
    delete_node(cluster.members().get(index=1))
    run_waiting()
    assert Action.objects.get().state == "SUCCEEDED"
    assert Node.objects.present().count() == 1


def test_new_nodes_are_added_to_the_pool(cluster: Cluster) -> None:
    assert run("CLUSTER_SCALE_OUT", cluster, count=2).state == "SUCCEEDED"
    assert BalancingMember.objects.count() == 4


def test_created_nodes_are_added_to_the_pool_if_another_creation_fails(cluster: Cluster) -> None:
    ComputeNode.objects.update(vcpus=3, vcpu_ratio=1)
    assert run("CLUSTER_SCALE_OUT", cluster, count=2).state == "FAILED"
    [came] = cluster.members().filter(index__gt=2, status="ACTIVE")
    assert BalancingMember.objects.filter(server__uuid=came.physical_id, weight=1).exists()
    assert BalancingMember.objects.count() == 3


def test_partly_failed_scaling_starts_no_cooldown(cluster: Cluster) -> None:
    spec = {"event": "CLUSTER_SCALE_OUT", "adjustment": {"cooldown": 60}}
    binding = make_binding(cluster, "senlin.policy.scaling-1.0", spec)
    ComputeNode.objects.update(vcpus=3, vcpu_ratio=1)
    assert run("CLUSTER_SCALE_OUT", cluster, count=2).state == "FAILED"
    binding.refresh_from_db()
    assert binding.last_op is None


def test_check_restores_the_weight_of_running_nodes_whose_removal_was_cancelled(cluster: Cluster) -> None:
    BalancingMember.objects.update(connections=5)
    scaling = proposed("CLUSTER_SCALE_IN", cluster)
    applier = Applier(InlineExecutor())
    for _ in range(5):
        applier.advance()
        applier.collect(0)
    assert BalancingMember.objects.filter(weight=0).count() == 1
    ActionPlan.objects.get(pk=scaling.pk).abandon("alice")
    applier.poll()
    applier.advance()
    applier.collect(0)
    applier.stop()
    assert ActionPlan.objects.get(pk=scaling.pk).state == "CANCELLED"
    assert run("CLUSTER_CHECK", cluster).state == "SUCCEEDED"
    assert list(BalancingMember.objects.values_list("weight", flat=True)) == [1, 1]
