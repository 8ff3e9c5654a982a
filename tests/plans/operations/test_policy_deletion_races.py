"""A policy is deleted, or a cluster gets it: never both, in either order."""

import pytest
from pytest_django import Settings

from cluster.models import Cluster, Policy, PolicyBinding
from cluster.models.clusters import PolicyQuerySet
from cluster.operations.policies import delete_policy
from tests.actions.types.clusters.builders import run
from tests.builders import make_cluster, make_policy
from tests.interleaving import Rival, interrupt_before
from watcher_site.refusals import Conflict

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def types(settings: Settings) -> None:
    settings.POLICY_TYPES = ["tests.plans.recording_policy.Recording"]


@pytest.fixture
def policy() -> Policy:
    return make_policy(type="recording")


def attach(cluster: Cluster, policy: Policy) -> str:
    return str(run("CLUSTER_ATTACH_POLICY", cluster, policy_id=str(policy.uuid)).state)


def test_who_deletes_a_policy_that_is_just_being_attached_waits_and_is_refused(
    monkeypatch: pytest.MonkeyPatch, policy: Policy
) -> None:
    deletion = Rival(lambda: delete_policy(policy))
    interrupt_before(monkeypatch, PolicyBinding, "save", deletion)
    assert attach(make_cluster(), policy) == "SUCCEEDED"
    with pytest.raises(Conflict, match="is in use by 1 cluster"):
        deletion.result()


def test_a_policy_that_was_just_deleted_is_not_attached(monkeypatch: pytest.MonkeyPatch, policy: Policy) -> None:
    deletion = Rival(lambda: delete_policy(policy))
    interrupt_before(monkeypatch, PolicyQuerySet, "select_for_update", deletion)
    assert attach(make_cluster(), policy) == "FAILED"
    deletion.result()
    assert not PolicyBinding.objects.exists()
