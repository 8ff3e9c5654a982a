"""An applier killed during a CLUSTER_UPDATE: in the end each node has one server of the new profile."""

import pytest

from cluster.models import Cluster, Profile, Server
from plans.models import ActionPlan
from tests.actions.types.clusters.builders import create_cluster, proposed, reload
from tests.builders import make_flavor, make_node, make_profile
from tests.plans.kills import kill_at_every_change

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
# With fewer kills, the appliers were not killed during the update.
AT_LEAST = 8


@pytest.mark.parametrize(
    ("spec", "servers"),
    [({"flavor": "large"}, 2), ({"flavor": "large", "metadata": {"a": "b"}}, 4)],
    ids=["resized", "replaced"],
)
def test_cluster_is_updated_whenever_the_applier_is_killed(
    monkeypatch: pytest.MonkeyPatch, spec: dict[str, object], servers: int
) -> None:
    make_node(vcpus=1000, memory=10**6, disk=10**5)
    make_flavor("large", vcpus=2)
    small, other = make_profile("small"), make_profile("other", spec=spec)

    def updating() -> ActionPlan:
        return proposed("CLUSTER_UPDATE", create_cluster(2, profile=small), new_profile_id=str(other.uuid))

    kills = 0
    for plan in kill_at_every_change(monkeypatch, updating, step=3):
        cluster = Cluster.objects.latest("pk")
        assert (plan.state, reload(cluster).status, cluster.profile) == ("SUCCEEDED", "ACTIVE", other)
        assert profiles(cluster) == {other.pk}
        ever = Server.objects.filter(name__in=cluster.members().values("name"))
        assert ever.count() == servers
        assert sorted(ever.present().values_list("flavor", "uuid")) == [
            ("large", uuid) for uuid in sorted(cluster.members().values_list("physical_id", flat=True))
        ]
        kills += 1
    assert kills > AT_LEAST


def profiles(cluster: Cluster) -> set[int]:
    """Return the keys of the profiles of the members of a cluster."""
    return set(Profile.objects.filter(nodes__in=cluster.members()).values_list("pk", flat=True))
