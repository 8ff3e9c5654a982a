"""Operations on clusters follow the decisions of the policies."""

import pytest

from actions.models import Action
from cluster.models import Cluster, Node, Server
from tests.actions.types.clusters.test_cluster_growth import again, run
from tests.builders import make_binding, make_cluster, make_node
from tests.cluster.policies.placed import cluster_on, hosts_in

pytestmark = pytest.mark.django_db


def test_new_servers_are_in_their_zones_and_on_their_hosts() -> None:
    hosts_in("az1", "az1", "az2", "az3")
    cluster = make_cluster()
    make_binding(cluster, "senlin.policy.zone_placement-1.0", {"zones": [{"name": "az1"}, {"name": "az2"}]})
    make_binding(cluster, "senlin.policy.affinity-1.0")
    assert run("CLUSTER_SCALE_OUT", cluster, count=3).state == "SUCCEEDED"
    assert set(Server.objects.values_list("node__hostname", flat=True)) == {"az1-1", "az1-2", "az2-3"}


def test_nodes_that_a_recovery_creates_are_in_their_zones_and_on_their_hosts() -> None:
    az1, *_ = hosts_in("az1", "az1", "az2")
    make_node("roomy", zone="az3", vcpus=100, memory=10**6, disk=10**4)
    cluster = cluster_on(az1)
    Cluster.objects.update(desired_capacity=3)
    make_binding(cluster, "senlin.policy.zone_placement-1.0", {"zones": [{"name": "az1"}, {"name": "az2"}]})
    make_binding(cluster, "senlin.policy.affinity-1.0")
    assert run("CLUSTER_RECOVER", cluster, check_capacity=True).state == "SUCCEEDED"
    assert set(Server.objects.values_list("node__hostname", flat=True)) == {"az1-1", "az1-2", "az2-3"}


@pytest.mark.parametrize("inputs", [{}, {"check_capacity": True}])
def test_a_recovery_that_creates_no_node_needs_no_place(inputs: dict[str, bool]) -> None:
    cluster = cluster_on(*hosts_in("az1"))
    Cluster.objects.update(desired_capacity=1 if inputs else 2)
    make_binding(cluster, "senlin.policy.affinity-1.0")
    assert run("CLUSTER_RECOVER", cluster, **inputs).state == "SUCCEEDED"


def test_a_plan_that_is_not_feasible_fails_and_creates_nothing() -> None:
    hosts_in("az1")
    cluster = make_cluster()
    make_binding(cluster, "senlin.policy.affinity-1.0")
    assert run("CLUSTER_SCALE_OUT", cluster, count=2).state == "FAILED"
    assert "There is no feasible plan to handle all nodes" in str(Action.objects.get().status_message)
    assert not Node.objects.exists()


def test_shrinking_leaves_the_zones_even() -> None:
    az1, az2 = hosts_in("az1", "az2")
    cluster = cluster_on(az1, az1, az1, az2)
    make_binding(cluster, "senlin.policy.zone_placement-1.0", {"zones": [{"name": "az1"}, {"name": "az2"}]})
    make_binding(cluster, "senlin.policy.deletion-1.1", {"criteria": "OLDEST_FIRST"})
    assert run("CLUSTER_SCALE_IN", cluster, count=2).state == "SUCCEEDED"
    assert list(cluster.members().values_list("index", flat=True)) == [3, 4]


def test_nodes_whose_servers_are_to_stay_stand_alone_and_their_places_may_be_filled() -> None:
    cluster = cluster_on(*hosts_in("az1", "az1"))
    spec = {"criteria": "YOUNGEST_FIRST", "destroy_after_deletion": False, "reduce_desired_capacity": False}
    make_binding(cluster, "senlin.policy.deletion-1.1", spec)
    assert run("CLUSTER_SCALE_IN", cluster).state == "SUCCEEDED"
    assert list(cluster.members().values_list("index", flat=True)) == [1]
    assert (Server.objects.present().count(), again(cluster).desired_capacity) == (2, 2)


def test_a_node_that_somebody_deletes_goes_with_its_server_and_its_data_say_nothing_else() -> None:
    cluster = cluster_on(*hosts_in("az1", "az1"))
    make_binding(cluster, "senlin.policy.deletion-1.1", {"destroy_after_deletion": False})
    node = cluster.members().get(index=1)
    assert run("NODE_DELETE", node).state == "SUCCEEDED"
    assert not Server.objects.present().filter(uuid=node.physical_id).exists()
    assert "destroy_after_deletion" not in Action.objects.get().data["deletion"]


def test_a_scaling_that_has_not_cooled_down_is_refused() -> None:
    hosts_in("az1")
    cluster = make_cluster()
    spec = {"event": "CLUSTER_SCALE_OUT", "adjustment": {"cooldown": 60}}
    make_binding(cluster, "senlin.policy.scaling-1.0", spec)
    assert [run("CLUSTER_SCALE_OUT", cluster).state for _ in range(2)] == ["SUCCEEDED", "FAILED"]
    assert "cooldown is still in progress" in str(Action.objects.latest("pk").status_message)
    assert cluster.members().count() == 1
