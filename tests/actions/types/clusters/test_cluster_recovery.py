"""CLUSTER_CHECK and CLUSTER_RECOVER on the embedded cloud."""

import pytest

from cluster.drivers.base import cloud
from cluster.models import Cluster, Flavor, Node, Server
from plans.models import ActionPlan
from tests.actions.types.clusters.builders import (
    create_cluster,
    derived,
    origin,
    reload,
    run,
    running_servers,
    statuses,
)
from tests.builders import make_cluster, make_node, make_server

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster() -> Cluster:
    make_node()
    return create_cluster(3)


def lose_server(cluster: Cluster, number: int = 0) -> Node:
    """Delete the server of a member without the cluster's knowledge."""
    node = cluster.members()[number]
    cloud().delete_server(str(node.physical_id))
    return node


# CLUSTER_CHECK


def test_check_finds_each_node_without_a_running_server(cluster: Cluster) -> None:
    lost = lose_server(cluster)
    plan = run("CLUSTER_CHECK", cluster)
    assert (plan.state, derived(plan)) == ("SUCCEEDED", [("NODE_CHECK", "SUCCEEDED")] * 3)
    assert statuses(cluster) == ["ERROR", "ACTIVE", "ACTIVE"]
    current = reload(cluster)
    assert current.status == "WARNING"
    assert current.status_reason == "CLUSTER_CHECK: number of active nodes is 2, below desired_capacity (3)"
    assert origin(plan).outputs["nodes"][str(lost.uuid)] == "ERROR"


def test_check_sets_a_cluster_of_running_nodes_active(cluster: Cluster) -> None:
    Cluster.objects.update(status="WARNING")
    run("CLUSTER_CHECK", cluster)
    assert reload(cluster).status == "ACTIVE"


def test_cluster_without_nodes_can_be_checked() -> None:
    cluster = make_cluster(min_size=1)
    assert run("CLUSTER_CHECK", cluster).state == "SUCCEEDED"
    assert reload(cluster).status == "ERROR"


def test_check_skips_a_node_that_was_never_created(cluster: Cluster) -> None:
    Node.objects.filter(pk=cluster.members()[0].pk).update(status="INIT", physical_id=None)
    plan = run("CLUSTER_CHECK", cluster)
    assert (plan.state, derived(plan)[0]) == ("SUCCEEDED", ("NODE_CHECK", "SKIPPED"))


# CLUSTER_RECOVER


def test_recovery_without_check_recovers_only_nodes_in_error(cluster: Cluster) -> None:
    lost, _ = lose_server(cluster, 0), lose_server(cluster, 1)
    Node.objects.filter(pk=lost.pk).update(status="ERROR")
    plan = run("CLUSTER_RECOVER", cluster)
    assert (plan.state, derived(plan)) == ("SUCCEEDED", [("NODE_RECOVER", "SUCCEEDED")])
    assert origin(plan).outputs == {"nodes_recovered": [str(lost.uuid)], "nodes_added": []}
    assert running_servers() == 2


def test_recovery_with_check_recovers_all_nodes_without_a_running_server(cluster: Cluster) -> None:
    lost = lose_server(cluster)
    plan = run("CLUSTER_RECOVER", cluster, check=True)
    assert origin(plan).outputs["nodes_recovered"] == [str(lost.uuid)]
    assert (reload(cluster).status, statuses(cluster)) == ("ACTIVE", ["ACTIVE"] * 3)
    assert (Server.objects.count(), running_servers()) == (4, 3)


def test_recovery_of_a_healthy_cluster_derives_nothing(cluster: Cluster) -> None:
    plan = run("CLUSTER_RECOVER", cluster, check_capacity=True)
    assert (plan.state, derived(plan), Server.objects.count()) == ("SUCCEEDED", [], 3)


def test_recovery_creates_missing_nodes_with_check_capacity(cluster: Cluster) -> None:
    Cluster.objects.update(desired_capacity=5)
    run("CLUSTER_RECOVER", cluster)
    assert len(statuses(cluster)) == 3
    plan = run("CLUSTER_RECOVER", cluster, check_capacity=True)
    assert (reload(cluster).desired_capacity, statuses(cluster)) == (5, ["ACTIVE"] * 5)
    assert len(origin(plan).outputs["nodes_added"]) == 2
    assert list(cluster.members().values_list("index", flat=True)) == [1, 2, 3, 4, 5]


def test_partly_created_cluster_can_be_recovered() -> None:
    make_node(vcpus=2, vcpu_ratio=1)
    cluster = make_cluster(status="INIT", desired_capacity=4, min_size=3)
    assert run("CLUSTER_CREATE", cluster).state == "FAILED"
    assert (reload(cluster).status, statuses(cluster)) == ("ERROR", ["ACTIVE", "ACTIVE", "ERROR", "ERROR"])
    make_node("compute2")
    assert run("CLUSTER_RECOVER", cluster).state == "SUCCEEDED"
    assert (reload(cluster).status, statuses(cluster)) == ("ACTIVE", ["ACTIVE"] * 4)
    assert running_servers() == 4


def test_recovery_without_capacity_fails_and_the_cluster_is_in_warning(cluster: Cluster) -> None:
    lose_server(cluster)
    Flavor.objects.update(vcpus=99)
    plan = run("CLUSTER_RECOVER", cluster, check=True)
    assert plan.state == "FAILED"
    assert (reload(cluster).status, statuses(cluster)) == ("WARNING", ["ERROR", "ACTIVE", "ACTIVE"])


@pytest.mark.parametrize("inputs", [{"operation": "DELETE"}, {"check": 1}, {"check_capacity": "yes"}, {"count": 1}])
def test_invalid_inputs_are_refused(cluster: Cluster, inputs: dict[str, object]) -> None:
    plan = run("CLUSTER_RECOVER", cluster, **inputs)
    assert "Invalid input parameters" in origin(plan).status_message
    assert reload(cluster).status == "ACTIVE"


@pytest.mark.parametrize("kind", ["CLUSTER_CHECK", "CLUSTER_RECOVER"])
def test_deleted_cluster_is_skipped(kind: str) -> None:
    cluster = make_cluster()
    Cluster.objects.soft_delete()
    plan: ActionPlan = run(kind, cluster)
    assert origin(plan).state == "SKIPPED"


def test_recovery_ignores_another_server_of_the_same_name(cluster: Cluster) -> None:
    other = make_server("a cluster-1", state="stopped")
    run("CLUSTER_RECOVER", cluster, check=True)
    assert Server.objects.get(pk=other.pk).deleted_at is None


def test_node_recover_updates_the_status_of_the_cluster(cluster: Cluster) -> None:
    lost = lose_server(cluster)
    run("CLUSTER_CHECK", cluster)
    assert reload(cluster).status == "WARNING"
    assert run("NODE_RECOVER", lost).state == "SUCCEEDED"
    assert reload(cluster).status == "ACTIVE"
    assert reload(cluster).status_reason == "NODE_RECOVER: number of active nodes is 3, as desired_capacity (3) says"
