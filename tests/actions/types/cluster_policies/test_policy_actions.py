"""Actions that attach policies to clusters, update and detach them."""

from collections.abc import Callable

import pytest
from pytest_django import Settings

from actions.types.base import ActionContext, ActionFailed, make
from actions.types.cluster_policies.cluster_attach_policy import ClusterAttachPolicy
from cluster.models import Cluster, Policy, PolicyBinding
from plans.models import ActionPlan
from tests.actions.types.clusters.builders import origin, proposed, reload, run, write_before_the_lock
from tests.builders import make_cluster, make_policy
from tests.plans.inline import run_waiting
from tests.plans.kills import kill_at_every_change
from tests.plans.recording_policy import Recording, Several
from tests.races import Race

pytestmark = pytest.mark.django_db
MISSING = "8c1c4e8e-6d51-4b4a-9e39-3d8e8f1d9a55"


@pytest.fixture(autouse=True)
def types(settings: Settings) -> None:
    settings.POLICY_TYPES = [f"tests.plans.recording_policy.{kind.__name__}" for kind in (Recording, Several)]
    Recording.calls.clear()


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster()


@pytest.fixture
def policy() -> Policy:
    return make_policy(type="recording")


def attach(cluster: Cluster, policy: Policy, **inputs: object) -> ActionPlan:
    return run("CLUSTER_ATTACH_POLICY", cluster, policy_id=str(policy.uuid), **inputs)


def detach(cluster: Cluster, policy: Policy) -> ActionPlan:
    return run("CLUSTER_DETACH_POLICY", cluster, policy_id=str(policy.uuid))


def bindings() -> list[tuple[int, bool]]:
    return list(PolicyBinding.objects.present().order_by("pk").values_list("priority", "enabled"))


def test_attached_policy_has_the_priority_of_its_type(cluster: Cluster, policy: Policy) -> None:
    assert attach(cluster, policy).state == "SUCCEEDED"
    assert (bindings(), Recording.calls) == ([(300, True)], ["attach"])


def test_attach_stores_the_requested_priority_and_enabled(cluster: Cluster, policy: Policy) -> None:
    attach(cluster, policy, priority=7, enabled=False)
    assert bindings() == [(7, False)]


@pytest.mark.parametrize("status", ["INIT", "WARNING", "ERROR"])
def test_attach_keeps_the_status_of_the_cluster(cluster: Cluster, policy: Policy, status: str) -> None:
    Cluster.objects.update(status=status)
    attach(cluster, policy)
    assert reload(cluster).status == status


def test_attach_of_an_attached_policy_succeeds_and_changes_nothing(cluster: Cluster, policy: Policy) -> None:
    attach(cluster, policy, priority=7)
    plan = attach(cluster, policy, priority=8)
    assert (plan.state, origin(plan).outputs) == ("SUCCEEDED", {"reason": "Policy already attached."})
    assert (bindings(), Recording.calls) == ([(7, True)], ["attach"])


def test_second_policy_of_a_singleton_type_is_refused(cluster: Cluster, policy: Policy) -> None:
    attach(cluster, policy)
    plan = attach(cluster, make_policy("another", type="recording"))
    assert f"a cluster has one policy of type recording, and this one has {policy.uuid}" in origin(plan).status_message
    assert (len(bindings()), Recording.calls) == (1, ["attach"])


def test_several_policies_of_a_type_that_allows_them_are_attached(cluster: Cluster) -> None:
    attach(cluster, make_policy("one", type="several"))
    attach(cluster, make_policy("two", type="several"))
    assert len(bindings()) == 2


def test_policy_can_be_attached_to_two_clusters(cluster: Cluster, policy: Policy) -> None:
    attach(cluster, policy)
    attach(make_cluster("another"), policy)
    assert len(bindings()) == 2


def test_unknown_policy_is_refused(cluster: Cluster) -> None:
    plan = run("CLUSTER_ATTACH_POLICY", cluster, policy_id=MISSING)
    assert f"policy_id: there is no policy {MISSING}" in origin(plan).status_message
    assert bindings() == []


def test_policy_that_refuses_the_attach_is_not_attached(cluster: Cluster) -> None:
    plan = attach(cluster, make_policy(type="recording", spec={"refuses": True}))
    assert "Policy check failure: not now" in origin(plan).status_message
    assert bindings() == []


def test_policy_of_a_missing_type_cannot_be_attached(cluster: Cluster) -> None:
    plan = attach(cluster, make_policy(type="vanished"))
    assert "Policy type vanished is not installed" in origin(plan).status_message
    assert bindings() == []


def test_detached_policy_can_be_attached_again(cluster: Cluster, policy: Policy) -> None:
    attach(cluster, policy)
    assert detach(cluster, policy).state == "SUCCEEDED"
    assert bindings() == []
    attach(cluster, policy)
    assert (len(bindings()), Recording.calls) == (1, ["attach", "detach", "attach"])


def test_policy_that_refuses_the_detach_stays_attached(cluster: Cluster, policy: Policy) -> None:
    attach(cluster, policy)
    Policy.objects.update(spec={"refuses": True})
    assert detach(cluster, policy).state == "FAILED"
    assert len(bindings()) == 1


def test_policy_of_a_missing_type_can_be_detached(cluster: Cluster, policy: Policy) -> None:
    attach(cluster, policy)
    Policy.objects.update(type="vanished")
    assert detach(cluster, policy).state == "SUCCEEDED"
    assert bindings() == []


@pytest.mark.parametrize("kind", ["CLUSTER_DETACH_POLICY", "CLUSTER_UPDATE_POLICY"])
def test_detach_and_update_of_an_unattached_policy_fail(cluster: Cluster, policy: Policy, kind: str) -> None:
    attach(make_cluster("another"), policy)
    plan = run(kind, cluster, policy_id=str(policy.uuid))
    assert (plan.state, "Policy not attached." in origin(plan).status_message) == ("FAILED", True)


@pytest.mark.parametrize(
    ("inputs", "left"),
    [({"priority": 1}, (1, True)), ({"enabled": False}, (300, False)), ({}, (300, True))],
    ids=["priority", "enabled", "nothing"],
)
def test_update_changes_priority_and_enabled(
    cluster: Cluster, policy: Policy, inputs: dict[str, object], left: tuple[int, bool]
) -> None:
    attach(cluster, policy)
    plan = run("CLUSTER_UPDATE_POLICY", cluster, policy_id=str(policy.uuid), **inputs)
    assert (plan.state, bindings()) == ("SUCCEEDED", [left])


@pytest.mark.parametrize(
    "inputs", [{}, {"policy_id": "x"}, {"policy_id": MISSING, "priority": -1}], ids=["none", "no UUID", "below 0"]
)
def test_invalid_inputs_are_refused(cluster: Cluster, inputs: dict[str, object]) -> None:
    assert "Invalid input parameters" in origin(run("CLUSTER_ATTACH_POLICY", cluster, **inputs)).status_message


def test_two_actions_attach_a_policy_once(cluster: Cluster, policy: Policy, settings: Settings) -> None:
    settings.ACTION_RETRY_INTERVAL = 0
    plans = [proposed("CLUSTER_ATTACH_POLICY", cluster, policy_id=str(policy.uuid)) for _ in range(2)]
    run_waiting()
    assert [ActionPlan.objects.get(pk=plan.pk).state for plan in plans] == ["SUCCEEDED", "SUCCEEDED"]
    assert len(bindings()) == 1


def test_attach_keeps_changes_of_the_cluster_written_before_the_lock(
    cluster: Cluster, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_before_the_lock(monkeypatch, name="renamed", desired_capacity=4)
    assert attach(cluster, policy).state == "SUCCEEDED"
    assert (reload(cluster).name, reload(cluster).desired_capacity) == ("renamed", 4)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_policy_is_attached_once_whenever_the_applier_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    def attaching() -> ActionPlan:
        policy = make_policy(f"policy {Policy.objects.count()}", type="recording")
        return proposed("CLUSTER_ATTACH_POLICY", make_cluster(), policy_id=str(policy.uuid))

    kills = 0
    for plan in kill_at_every_change(monkeypatch, attaching):
        assert plan.state == "SUCCEEDED"
        assert PolicyBinding.objects.filter(cluster=Cluster.objects.latest("pk")).count() == 1
        kills += 1
    assert kills > 5


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("other_policy", [False, True])
def test_one_of_two_concurrent_attaches_without_a_lock_succeeds(
    cluster: Cluster, policy: Policy, other_policy: bool
) -> None:
    rival = make_policy("another", type="recording") if other_policy else policy
    with Race() as race:
        for _ in range(20):
            race.run(*(attaching_now(cluster, one) for one in (policy, rival)))
            assert len(bindings()) == 1
            PolicyBinding.objects.all().delete()


def attaching_now(cluster: Cluster, policy: Policy) -> Callable[[], bool]:
    def attach() -> bool:
        inputs = {"resource_id": str(cluster.uuid), "policy_id": str(policy.uuid)}
        action = make("CLUSTER_ATTACH_POLICY", inputs, ActionContext())
        assert isinstance(action, ClusterAttachPolicy)
        try:
            action.begin({})
        except ActionFailed:
            return False
        return True

    return attach
