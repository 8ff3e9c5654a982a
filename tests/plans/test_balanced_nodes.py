"""Actions on nodes of a cluster whose servers are in the pool of a load balancer."""

from typing import Any

import pytest

from actions.models import Action
from cluster.balancing.embedded import EmbeddedBalancer
from cluster.models import BalancingMember, BalancingPool, Cluster, Node
from cluster.policies.checking import load
from plans.node_operations import delete_node
from tests.builders import make_balancing_pool, make_binding, make_node
from tests.cluster.policies.placed import cluster_on
from tests.plans.inline import run_waiting
from tests.plans.test_cluster_growth import run

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster() -> Cluster:
    """Two nodes, whose servers are in the pool."""
    host = make_node()
    made = cluster_on(host, host)
    make_balancing_pool("web")
    binding = make_binding(made, "senlin.policy.loadbalance-1.3", {"pool": {"id": "web"}, "draining_timeout": 600})
    load(binding).attach(made)
    return made


def test_a_node_is_deleted_when_its_connections_have_ended(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked again more often than an action may be put off for other reasons."""
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


def test_a_node_whose_pool_is_gone_is_not_deleted(cluster: Cluster) -> None:
    BalancingPool.objects.all().soft_delete()
    delete_node(cluster.members().get(index=1))
    run_waiting()
    assert "Load-balancer pool web not found" in str(Action.objects.get().status_message)
    assert Node.objects.present().count() == 2


def test_new_nodes_are_put_in(cluster: Cluster) -> None:
    assert run("CLUSTER_SCALE_OUT", cluster, count=2).state == "SUCCEEDED"
    assert BalancingMember.objects.count() == 4
