"""Deleting a policy and attaching it to a cluster exclude each other, in both orders."""

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


def test_policy_deletion_waits_for_a_concurrent_attachment_and_is_refused(
    monkeypatch: pytest.MonkeyPatch, policy: Policy
) -> None:
    deletion = Rival(lambda: delete_policy(policy))
    interrupt_before(monkeypatch, PolicyBinding, "save", deletion)
    assert attach(make_cluster(), policy) == "SUCCEEDED"
    with pytest.raises(Conflict, match="is in use by 1 cluster"):
        deletion.result()


def test_attachment_of_a_concurrently_deleted_policy_fails(monkeypatch: pytest.MonkeyPatch, policy: Policy) -> None:
    deletion = Rival(lambda: delete_policy(policy))
    interrupt_before(monkeypatch, PolicyQuerySet, "select_for_update", deletion)
    assert attach(make_cluster(), policy) == "FAILED"
    deletion.result()
    assert not PolicyBinding.objects.exists()
