"""Attachment of a load-balancing policy to a cluster, with the changes of the pool or without any."""

from typing import Any

import pytest

from cluster.drivers.base import OperationRefused
from cluster.drivers.embedded.balancing import EmbeddedBalancer
from cluster.models import BalancingMember, Cluster, Node, Policy, PolicyBinding, Server
from cluster.policies.load_balancing import POOLED
from plans.models import ActionPlan
from tests.actions.types.clusters.builders import run
from tests.builders import make_balancing_pool, make_node, make_policy
from tests.cluster.policies.placed_clusters import cluster_on

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster() -> Cluster:
    host = make_node()
    return cluster_on(host, host, host)


@pytest.fixture
def policy() -> Policy:
    return make_policy(type="senlin.policy.loadbalance-1.3", spec={"pool": {"id": "web"}})


def attach(cluster: Cluster, policy: Policy, **inputs: object) -> ActionPlan:
    return run("CLUSTER_ATTACH_POLICY", cluster, policy_id=str(policy.uuid), **inputs)


def server(cluster: Cluster, index: int) -> Server:
    return Server.objects.get(uuid=cluster.members().get(index=index).physical_id)


def pool_members() -> list[str]:
    return sorted(BalancingMember.objects.values_list("server__name", flat=True))


def test_failed_attach_undoes_its_changes_of_the_pool(
    cluster: Cluster, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_balancing_pool("web", server(cluster, 1))
    write_member, refused = EmbeddedBalancer.write_member, str(server(cluster, 3).uuid)

    def write_some(self: EmbeddedBalancer, pool: Any, uuid: str, *arguments: Any) -> Any:
        if uuid == refused:
            raise OperationRefused("no address there")
        return write_member(self, pool, uuid, *arguments)

    monkeypatch.setattr(EmbeddedBalancer, "write_member", write_some)
    plan = attach(cluster, policy)
    assert (plan.state, PolicyBinding.objects.count()) == ("FAILED", 0)
    assert pool_members() == [server(cluster, 1).name]
    assert not Node.objects.filter(data__has_key=POOLED).exists()


def test_attach_omits_a_member_whose_server_was_deleted(cluster: Cluster, policy: Policy) -> None:
    make_balancing_pool("web")
    Server.objects.filter(pk=server(cluster, 2).pk).soft_delete()
    assert attach(cluster, policy).state == "SUCCEEDED"
    assert pool_members() == [server(cluster, 1).name, server(cluster, 3).name]
    assert Node.objects.filter(data__has_key=POOLED).count() == 2


def test_disabled_policy_adds_pool_members_only_when_it_is_enabled(cluster: Cluster, policy: Policy) -> None:
    make_balancing_pool("web")
    assert attach(cluster, policy, enabled=False).state == "SUCCEEDED"
    assert pool_members() == []
    run("CLUSTER_UPDATE_POLICY", cluster, policy_id=str(policy.uuid), enabled=True)
    assert len(pool_members()) == 3
