"""Operations lock profiles and clusters in one order, and do not deadlock."""

import pytest

from actions.types.clusters.cluster_update import ClusterUpdate
from cluster.models import Cluster, Node
from plans.operations import nodes
from plans.operations.clusters import update_cluster
from plans.operations.nodes import create_node
from tests.actions.types.clusters.builders import reload, run
from tests.builders import make_cluster, make_profile
from tests.interleaving import Rival, interrupt_after, interrupt_before
from watcher_site.refusals import Conflict

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def cluster() -> Cluster:
    make_profile("large")
    return make_cluster()


def test_creating_a_node_and_updating_its_cluster_to_the_same_profile_do_not_deadlock(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = Rival(lambda: update_cluster(cluster, {"profile": "large"}))
    interrupt_after(monkeypatch, nodes, "cluster_to_join", update)
    create_node("web", "large", cluster=cluster.name)
    assert update.result().target == cluster.uuid
    assert Node.objects.get().profile.name == "large"


def test_updating_a_cluster_and_creating_a_node_of_the_new_profile_do_not_deadlock(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = make_profile("larger")
    creation = Rival(lambda: create_node("web", "larger", cluster=cluster.name))
    interrupt_before(monkeypatch, ClusterUpdate, "apply", creation)
    assert run("CLUSTER_UPDATE", cluster, new_profile_id=str(profile.uuid)).state == "SUCCEEDED"
    with pytest.raises(Conflict, match="NODE_CREATE action"):
        creation.result()
    assert reload(cluster).profile == profile
