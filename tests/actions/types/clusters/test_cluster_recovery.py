"""Clusters whose nodes are looked at, and get servers that run."""

import pytest

from cluster.drivers.base import cloud
from cluster.models import Cluster, Flavor, Node, Server
from plans.models import ActionPlan
from tests.actions.types.clusters.builders import (
    again,
    create_cluster,
    derived,
    origin,
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


def test_a_look_at_a_cluster_finds_each_node_that_does_not_run(cluster: Cluster) -> None:
    lost = lose_server(cluster)
    plan = run("CLUSTER_CHECK", cluster)
    assert (plan.state, derived(plan)) == ("SUCCEEDED", [("NODE_CHECK", "SUCCEEDED")] * 3)
    assert statuses(cluster) == ["ERROR", "ACTIVE", "ACTIVE"]
    current = again(cluster)
    assert current.status == "WARNING"
    assert current.status_reason == "CLUSTER_CHECK: number of active nodes is 2, below desired_capacity (3)"
    assert origin(plan).outputs["nodes"][str(lost.uuid)] == "ERROR"


def test_a_look_at_a_cluster_whose_nodes_run_finds_it_active(cluster: Cluster) -> None:
    Cluster.objects.update(status="WARNING")
    run("CLUSTER_CHECK", cluster)
    assert again(cluster).status == "ACTIVE"


def test_a_cluster_without_nodes_can_be_looked_at() -> None:
    cluster = make_cluster(min_size=1)
    assert run("CLUSTER_CHECK", cluster).state == "SUCCEEDED"
    assert again(cluster).status == "ERROR"


def test_a_look_at_a_node_that_was_never_created_is_skipped(cluster: Cluster) -> None:
    Node.objects.filter(pk=cluster.members()[0].pk).update(status="INIT", physical_id=None)
    plan = run("CLUSTER_CHECK", cluster)
    assert (plan.state, derived(plan)[0]) == ("SUCCEEDED", ("NODE_CHECK", "SKIPPED"))


# CLUSTER_RECOVER


def test_the_nodes_that_the_last_look_found_broken_are_recovered_and_no_others(cluster: Cluster) -> None:
    lost, _ = lose_server(cluster, 0), lose_server(cluster, 1)
    Node.objects.filter(pk=lost.pk).update(status="ERROR")
    plan = run("CLUSTER_RECOVER", cluster)
    assert (plan.state, derived(plan)) == ("SUCCEEDED", [("NODE_RECOVER", "SUCCEEDED")])
    assert origin(plan).outputs == {"nodes_recovered": [str(lost.uuid)], "nodes_added": []}
    assert running_servers() == 2


def test_with_a_look_at_first_all_that_do_not_run_are_recovered(cluster: Cluster) -> None:
    lost = lose_server(cluster)
    plan = run("CLUSTER_RECOVER", cluster, check=True)
    assert origin(plan).outputs["nodes_recovered"] == [str(lost.uuid)]
    assert (again(cluster).status, statuses(cluster)) == ("ACTIVE", ["ACTIVE"] * 3)
    assert (Server.objects.count(), running_servers()) == (4, 3)


def test_a_cluster_whose_nodes_run_is_left_as_it_is(cluster: Cluster) -> None:
    plan = run("CLUSTER_RECOVER", cluster, check_capacity=True)
    assert (plan.state, derived(plan), Server.objects.count()) == ("SUCCEEDED", [], 3)


def test_the_nodes_that_are_missing_are_created_where_that_is_requested(cluster: Cluster) -> None:
    Cluster.objects.update(desired_capacity=5)
    run("CLUSTER_RECOVER", cluster)
    assert len(statuses(cluster)) == 3
    plan = run("CLUSTER_RECOVER", cluster, check_capacity=True)
    assert (again(cluster).desired_capacity, statuses(cluster)) == (5, ["ACTIVE"] * 5)
    assert len(origin(plan).outputs["nodes_added"]) == 2
    assert list(cluster.members().values_list("index", flat=True)) == [1, 2, 3, 4, 5]


def test_a_cluster_whose_creation_failed_half_way_can_be_recovered() -> None:
    make_node(vcpus=2, vcpu_ratio=1)
    cluster = make_cluster(status="INIT", desired_capacity=4, min_size=3)
    assert run("CLUSTER_CREATE", cluster).state == "FAILED"
    assert (again(cluster).status, statuses(cluster)) == ("ERROR", ["ACTIVE", "ACTIVE", "ERROR", "ERROR"])
    make_node("compute2")
    assert run("CLUSTER_RECOVER", cluster).state == "SUCCEEDED"
    assert (again(cluster).status, statuses(cluster)) == ("ACTIVE", ["ACTIVE"] * 4)
    assert running_servers() == 4


def test_a_recovery_that_finds_no_capacity_says_how_many_nodes_run(cluster: Cluster) -> None:
    lose_server(cluster)
    Flavor.objects.update(vcpus=99)
    plan = run("CLUSTER_RECOVER", cluster, check=True)
    assert plan.state == "FAILED"
    assert (again(cluster).status, statuses(cluster)) == ("WARNING", ["ERROR", "ACTIVE", "ACTIVE"])


@pytest.mark.parametrize("inputs", [{"operation": "DELETE"}, {"check": 1}, {"check_capacity": "yes"}, {"count": 1}])
def test_inputs_that_make_no_sense_are_refused(cluster: Cluster, inputs: dict[str, object]) -> None:
    plan = run("CLUSTER_RECOVER", cluster, **inputs)
    assert "Invalid input parameters" in origin(plan).status_message
    assert again(cluster).status == "ACTIVE"


@pytest.mark.parametrize("kind", ["CLUSTER_CHECK", "CLUSTER_RECOVER"])
def test_a_cluster_that_is_gone_is_skipped(kind: str) -> None:
    cluster = make_cluster()
    Cluster.objects.soft_delete()
    plan: ActionPlan = run(kind, cluster)
    assert origin(plan).state == "SKIPPED"


def test_a_server_of_somebody_else_is_not_touched(cluster: Cluster) -> None:
    other = make_server("a cluster-1", state="stopped")
    run("CLUSTER_RECOVER", cluster, check=True)
    assert Server.objects.get(pk=other.pk).deleted_at is None


def test_a_member_that_a_person_has_recovered_is_in_its_clusters_status(cluster: Cluster) -> None:
    lost = lose_server(cluster)
    run("CLUSTER_CHECK", cluster)
    assert again(cluster).status == "WARNING"
    assert run("NODE_RECOVER", lost).state == "SUCCEEDED"
    assert again(cluster).status == "ACTIVE"
    assert again(cluster).status_reason == "NODE_RECOVER: number of active nodes is 3, as desired_capacity (3) says"
