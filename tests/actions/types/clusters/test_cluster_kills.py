"""An applier killed between database writes of cluster actions: the next applier completes them once."""

from collections.abc import Callable

import pytest

from actions.models import Action
from cluster.models import Cluster, Node, Server
from plans.models import ActionPlan
from tests.actions.types.clusters.builders import create_cluster, proposed, running_servers
from tests.builders import make_cluster, make_flavor, make_member, make_node, make_profile
from tests.plans.kills import kill_at_every_change

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
# With fewer kills, the appliers were not killed during the operation.
AT_LEAST = 8
# Adjacent writes are equivalent.
STEP = 2


@pytest.fixture(autouse=True)
def capacity() -> None:
    make_node(vcpus=1000, memory=10**6, disk=10**5)
    make_flavor("small")
    make_profile("web")


def kills(monkeypatch: pytest.MonkeyPatch, make: Callable[[], ActionPlan], step: int = 1) -> int:
    """Kill the appliers of plans, which must all succeed in the end, and return the number of plans."""
    plans = list(kill_at_every_change(monkeypatch, make, step))
    assert {plan.state for plan in plans} == {"SUCCEEDED"}
    return len(plans)


def of_type(action_type: str) -> int:
    return Action.objects.filter(action_type=action_type).count()


def test_scale_in_removes_the_decided_number_of_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    number = kills(monkeypatch, lambda: proposed("CLUSTER_SCALE_IN", create_cluster(3), count=2), STEP)
    assert number > AT_LEAST
    for cluster in Cluster.objects.all():
        assert (cluster.members().count(), cluster.desired_capacity, cluster.status) == (1, 1, "ACTIVE")
    assert (running_servers(), Server.objects.count()) == (number, 3 * number)
    assert of_type("NODE_DELETE") == 2 * number


def test_removed_nodes_keep_their_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> ActionPlan:
        cluster = create_cluster(2)
        return proposed("CLUSTER_DEL_NODES", cluster, nodes=[str(cluster.members()[0].uuid)])

    number = kills(monkeypatch, make, STEP)
    assert running_servers() == Server.objects.count() == 2 * number
    assert Node.objects.filter(cluster=None, index=-1, status="ACTIVE").count() == number
    assert not Cluster.objects.exclude(desired_capacity=1).exists()


def test_nodes_join_once_and_increase_the_desired_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> ActionPlan:
        alone = [str(make_member(f"alone-{number}", status="ACTIVE").uuid) for number in range(2)]
        return proposed("CLUSTER_ADD_NODES", make_cluster(size=1), nodes=alone)

    assert kills(monkeypatch, make, STEP) > AT_LEAST
    for cluster in Cluster.objects.all():
        assert list(cluster.members().values_list("index", flat=True)) == [1, 2, 3]
        assert (cluster.desired_capacity, cluster.next_index) == (3, 4)


def test_cluster_is_deleted_with_its_nodes_and_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kills(monkeypatch, lambda: proposed("CLUSTER_DELETE", create_cluster(2)), STEP) > AT_LEAST
    assert not Cluster.objects.present().exists()
    assert not Node.objects.present().exists()
    assert not running_servers()


def test_cluster_without_nodes_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    kills(monkeypatch, lambda: proposed("CLUSTER_DELETE", make_cluster()))
    assert not Cluster.objects.present().exists()


def test_node_delete_decreases_the_desired_capacity_once(monkeypatch: pytest.MonkeyPatch) -> None:
    number = kills(monkeypatch, lambda: proposed("NODE_DELETE", create_cluster(2).members()[0]))
    assert number > AT_LEAST
    for cluster in Cluster.objects.all():
        assert (cluster.members().count(), cluster.desired_capacity, cluster.status) == (1, 1, "ACTIVE")
    assert running_servers() == number


def test_node_create_increases_the_desired_capacity_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> ActionPlan:
        return proposed("NODE_CREATE", make_member(), cluster_id=str(make_cluster().uuid))

    number = kills(monkeypatch, make)
    assert number > AT_LEAST
    for cluster in Cluster.objects.all():
        assert (cluster.members().count(), cluster.desired_capacity, cluster.status) == (1, 1, "ACTIVE")
    assert running_servers() == Server.objects.count() == number
