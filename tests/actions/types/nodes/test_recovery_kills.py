"""An applier killed at each database write of a recovery: exactly one known server is left."""

import pytest

from cluster.drivers.base import cloud
from cluster.models import Cluster, Node, Server
from plans.models import ActionPlan
from plans.operations.nodes import create_node
from tests.actions.types.clusters.builders import create_cluster, proposed, run, statuses
from tests.builders import make_flavor, make_node, make_profile
from tests.plans.inline import run_waiting
from tests.plans.kills import kill_at_every_change

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
# With fewer kills, the appliers were not killed during the recovery.
AT_LEAST = 12


@pytest.fixture(autouse=True)
def capacity() -> None:
    make_node(vcpus=1000, memory=10**6, disk=10**5)
    make_flavor("small")
    make_profile("web")


def lose_server(node: Node) -> None:
    cloud().stop(str(node.physical_id))
    run("NODE_CHECK", node)


def node_recovery() -> ActionPlan:
    create_node("web", "web")
    run_waiting()
    node = Node.objects.latest("pk")
    lose_server(node)
    return proposed("NODE_RECOVER", node)


def test_node_gets_one_new_server_whenever_the_applier_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    kills = 0
    for plan in kill_at_every_change(monkeypatch, node_recovery):
        node = Node.objects.latest("pk")
        assert (plan.state, node.status) == ("SUCCEEDED", "ACTIVE")
        servers = Server.objects.filter(token__startswith=str(node.uuid)).order_by("pk")
        assert [server.deleted_at is None for server in servers] == [False, True]
        assert (servers[1].uuid, servers[1].state) == (node.physical_id, "active")
        kills += 1
    assert kills > AT_LEAST


def cluster_recovery() -> ActionPlan:
    cluster = create_cluster(2)
    lose_server(cluster.members()[0])
    Cluster.objects.filter(pk=cluster.pk).update(desired_capacity=3)
    return proposed("CLUSTER_RECOVER", cluster, check_capacity=True)


def test_cluster_reaches_its_desired_capacity_whenever_the_applier_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kills = 0
    for plan in kill_at_every_change(monkeypatch, cluster_recovery, step=2):
        cluster = Cluster.objects.latest("pk")
        assert (plan.state, cluster.status, statuses(cluster)) == ("SUCCEEDED", "ACTIVE", ["ACTIVE"] * 3)
        assert sorted(plan.actions.values_list("action_type", flat=True)) == [
            "CLUSTER_RECOVER",
            "NODE_CREATE",
            "NODE_RECOVER",
        ]
        ever = Server.objects.filter(name__in=cluster.members().values("name"))
        assert (ever.count(), ever.present().count()) == (4, 3)
        assert set(ever.present().values_list("uuid")) == set(cluster.members().values_list("physical_id"))
        kills += 1
    assert kills > AT_LEAST
