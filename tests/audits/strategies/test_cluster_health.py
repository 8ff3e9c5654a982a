"""Continuous, auto-triggered audits of the goal ``cluster_health`` from end to end."""

import pytest
from django.utils import timezone

from audits.engine.engine import DecisionEngine
from audits.models import Audit
from audits.operations.creation import create_audit
from cluster.drivers.base import cloud
from cluster.models import Cluster, Node, Server
from plans.models import ActionPlan
from tests.actions.types.clusters.builders import create_cluster, derived, proposed, reload, running_servers, statuses
from tests.builders import make_node
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster() -> Cluster:
    make_node()
    return create_cluster(3, "web")


@pytest.fixture
def engine() -> DecisionEngine:
    return DecisionEngine()


def make_audit(**fields: object) -> Audit:
    goal = {"goal": "cluster_health", "strategy": "cluster_recovery"}
    return create_audit(audit_type="CONTINUOUS", interval="60", auto_trigger=True, **goal, **fields)


def decide(engine: DecisionEngine) -> ActionPlan:
    """Run the audit now, and return its plan."""
    Audit.objects.update(next_run_time=timezone.now())
    while engine.run_next_audit():
        pass
    return ActionPlan.objects.latest("pk")


def lose_server(cluster: Cluster) -> Node:
    node = cluster.members()[1]
    cloud().delete_server(str(node.physical_id))
    return node


def kinds(plan: ActionPlan) -> list[str]:
    return list(plan.actions.filter(derived_from=None).order_by("pk").values_list("action_type", flat=True))


def test_server_of_a_cluster_deleted_in_the_cloud_is_replaced(cluster: Cluster, engine: DecisionEngine) -> None:
    make_audit()
    assert kinds(decide(engine)) == []
    lost = lose_server(cluster)
    plan = decide(engine)
    assert kinds(plan) == ["CLUSTER_CHECK", "CLUSTER_RECOVER"]
    run_waiting()
    assert ActionPlan.objects.get(pk=plan.pk).state == "SUCCEEDED"
    assert derived(plan) == [("NODE_CHECK", "SUCCEEDED")] * 3 + [("NODE_RECOVER", "SUCCEEDED")]
    assert (reload(cluster).status, statuses(cluster), running_servers()) == ("ACTIVE", ["ACTIVE"] * 3, 3)
    assert Server.objects.present().filter(uuid=Node.objects.get(pk=lost.pk).physical_id).exists()
    assert kinds(decide(engine)) == []


def test_cluster_is_restored_to_its_desired_capacity(cluster: Cluster, engine: DecisionEngine) -> None:
    Cluster.objects.update(desired_capacity=5)
    make_audit()
    decide(engine)
    run_waiting()
    assert (statuses(cluster), running_servers()) == (["ACTIVE"] * 5, 5)


def test_cluster_of_a_pending_plan_is_not_planned_again(cluster: Cluster, engine: DecisionEngine) -> None:
    make_audit()
    lose_server(cluster)
    first = decide(engine)
    assert kinds(decide(engine)) == []
    assert ActionPlan.objects.get(pk=first.pk).state == "PENDING"


def test_run_cancels_the_recommended_plan_of_the_previous_run(cluster: Cluster, engine: DecisionEngine) -> None:
    make_audit()
    Audit.objects.update(auto_trigger=False)
    lose_server(cluster)
    first = decide(engine)
    second = decide(engine)
    assert (ActionPlan.objects.get(pk=first.pk).state, second.state) == ("CANCELLED", "RECOMMENDED")
    assert kinds(second) == ["CLUSTER_CHECK", "CLUSTER_RECOVER"]


def test_cluster_with_a_pending_node_recovery_is_ignored(cluster: Cluster, engine: DecisionEngine) -> None:
    make_audit()
    proposed("NODE_RECOVER", lose_server(cluster))
    assert kinds(decide(engine)) == []


def test_audit_of_a_cloud_without_clusters_succeeds_with_an_empty_plan(engine: DecisionEngine) -> None:
    make_audit()
    assert decide(engine).state == "SUCCEEDED"
    assert Audit.objects.get().status_message is None


def test_audit_of_an_unknown_cluster_fails_with_its_name(cluster: Cluster, engine: DecisionEngine) -> None:
    make_audit(parameters={"clusters": ["db"]})
    while engine.run_next_audit():
        pass
    assert "clusters: there is no cluster db." in Audit.objects.get().status_message
