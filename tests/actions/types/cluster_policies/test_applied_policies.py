"""Effect of the decisions of policies on the operations of clusters."""

import pytest

from actions.models import Action
from cluster.models import Cluster, Node, Server
from tests.actions.types.clusters.test_cluster_growth import reload, run
from tests.builders import make_binding, make_cluster, make_node
from tests.cluster.policies.placed_clusters import cluster_on, hosts_in

pytestmark = pytest.mark.django_db


def test_scale_out_places_servers_by_zone_and_affinity_policies() -> None:
    hosts_in("az1", "az1", "az2", "az3")
    cluster = make_cluster()
    make_binding(cluster, "senlin.policy.zone_placement-1.0", {"zones": [{"name": "az1"}, {"name": "az2"}]})
    make_binding(cluster, "senlin.policy.affinity-1.0")
    assert run("CLUSTER_SCALE_OUT", cluster, count=3).state == "SUCCEEDED"
    assert set(Server.objects.values_list("node__hostname", flat=True)) == {"az1-1", "az1-2", "az2-3"}


def test_recovery_places_new_nodes_by_zone_and_affinity_policies() -> None:
    az1, *_ = hosts_in("az1", "az1", "az2")
    make_node("roomy", zone="az3", vcpus=100, memory=10**6, disk=10**4)
    cluster = cluster_on(az1)
    Cluster.objects.update(desired_capacity=3)
    make_binding(cluster, "senlin.policy.zone_placement-1.0", {"zones": [{"name": "az1"}, {"name": "az2"}]})
    make_binding(cluster, "senlin.policy.affinity-1.0")
    assert run("CLUSTER_RECOVER", cluster, check_capacity=True).state == "SUCCEEDED"
    assert set(Server.objects.values_list("node__hostname", flat=True)) == {"az1-1", "az1-2", "az2-3"}


@pytest.mark.parametrize("inputs", [{}, {"check_capacity": True}])
def test_recovery_without_new_nodes_requires_no_placement(inputs: dict[str, bool]) -> None:
    cluster = cluster_on(*hosts_in("az1"))
    Cluster.objects.update(desired_capacity=1 if inputs else 2)
    make_binding(cluster, "senlin.policy.affinity-1.0")
    assert run("CLUSTER_RECOVER", cluster, **inputs).state == "SUCCEEDED"


def test_infeasible_placement_fails_and_creates_no_node() -> None:
    hosts_in("az1")
    cluster = make_cluster()
    make_binding(cluster, "senlin.policy.affinity-1.0")
    assert run("CLUSTER_SCALE_OUT", cluster, count=2).state == "FAILED"
    assert "There is no feasible plan to handle all nodes" in str(Action.objects.get().status_message)
    assert not Node.objects.exists()


def test_scale_in_balances_the_zones() -> None:
    az1, az2 = hosts_in("az1", "az2")
    cluster = cluster_on(az1, az1, az1, az2)
    make_binding(cluster, "senlin.policy.zone_placement-1.0", {"zones": [{"name": "az1"}, {"name": "az2"}]})
    make_binding(cluster, "senlin.policy.deletion-1.1", {"criteria": "OLDEST_FIRST"})
    assert run("CLUSTER_SCALE_IN", cluster, count=2).state == "SUCCEEDED"
    assert list(cluster.members().values_list("index", flat=True)) == [3, 4]


def test_deletion_policy_keeps_the_servers_and_the_desired_capacity() -> None:
    cluster = cluster_on(*hosts_in("az1", "az1"))
    spec = {"criteria": "YOUNGEST_FIRST", "destroy_after_deletion": False, "reduce_desired_capacity": False}
    make_binding(cluster, "senlin.policy.deletion-1.1", spec)
    assert run("CLUSTER_SCALE_IN", cluster).state == "SUCCEEDED"
    assert list(cluster.members().values_list("index", flat=True)) == [1]
    assert (Server.objects.present().count(), reload(cluster).desired_capacity) == (2, 2)


def test_node_delete_ignores_destroy_after_deletion_of_the_policy() -> None:
    cluster = cluster_on(*hosts_in("az1", "az1"))
    make_binding(cluster, "senlin.policy.deletion-1.1", {"destroy_after_deletion": False})
    node = cluster.members().get(index=1)
    assert run("NODE_DELETE", node).state == "SUCCEEDED"
    assert not Server.objects.present().filter(uuid=node.physical_id).exists()
    assert "destroy_after_deletion" not in Action.objects.get().data["deletion"]


def test_scaling_during_the_cooldown_is_refused() -> None:
    hosts_in("az1")
    cluster = make_cluster()
    spec = {"event": "CLUSTER_SCALE_OUT", "adjustment": {"cooldown": 60}}
    make_binding(cluster, "senlin.policy.scaling-1.0", spec)
    assert [run("CLUSTER_SCALE_OUT", cluster).state for _ in range(2)] == ["SUCCEEDED", "FAILED"]
    assert "cooldown is still in progress" in str(Action.objects.latest("pk").status_message)
    assert cluster.members().count() == 1
