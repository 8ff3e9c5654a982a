"""CLUSTER_UPDATE: properties and profiles of clusters and their nodes, in batches."""

import pytest

from actions.models import Action
from actions.operations.skipping import skip_actions
from cluster.drivers.balancing import balancer
from cluster.models import Cluster, Flavor, Node, Profile, Server
from cluster.policies.batch import Batch
from cluster.policies.load_balancing import LoadBalancing
from plans.applier.applier import Applier
from plans.models import ActionPlan
from plans.operations.base import RequestOptions
from plans.operations.clusters import update_cluster
from tests.actions.types.clusters.builders import create_cluster, derived, origin, proposed, reload, run, statuses
from tests.builders import make_balancing_pool, make_cluster, make_flavor, make_node, make_policy, make_profile
from tests.plans.inline import InlineExecutor, run_waiting

pytestmark = pytest.mark.django_db
# After so many steps without a change, an applier has only deferred actions left.
QUIET_STEPS = 3


@pytest.fixture
def cluster() -> Cluster:
    make_node()
    return create_cluster(4)


@pytest.fixture
def large() -> Profile:
    make_flavor("large", vcpus=2)
    return make_profile("large", flavor="large")


def flavors() -> list[str]:
    return list(Server.objects.present().order_by("pk").values_list("flavor", flat=True))


def attach_batch_policy(cluster: Cluster, **spec: int) -> None:
    policy = make_policy(type=Batch.name, spec=spec)
    cluster.policy_bindings.create(policy=policy, priority=1)


def run_ready_actions() -> None:
    """Run all ready actions, until the states of actions and plans no longer change.

    Actions that wait stay deferred, and may be due again at once.
    """
    applier = Applier(InlineExecutor())
    steps: list[list[tuple[int, str, str]]] = []
    while len(steps) <= QUIET_STEPS or any(step != steps[-1] for step in steps[-QUIET_STEPS - 1 :]):
        applier.advance()
        applier.collect(0)
        steps.append(list(Action.objects.order_by("pk").values_list("pk", "state", "action_plan__state")))
    applier.stop()


def test_properties_of_the_cluster_are_updated_without_node_actions(cluster: Cluster) -> None:
    plan = run("CLUSTER_UPDATE", cluster, name="web", metadata={"owner": "rosa"}, timeout=60)
    assert (plan.state, derived(plan)) == ("SUCCEEDED", [])
    changed = reload(cluster)
    assert (changed.name, changed.metadata, changed.timeout) == ("web", {"owner": "rosa"}, 60)
    assert changed.status == "ACTIVE"


def test_new_profile_is_applied_to_all_members(cluster: Cluster, large: Profile) -> None:
    plan = run("CLUSTER_UPDATE", cluster, new_profile_id=str(large.uuid))
    assert (plan.state, derived(plan)) == ("SUCCEEDED", [("NODE_UPDATE", "SUCCEEDED")] * 4)
    assert (reload(cluster).profile, flavors()) == (large, ["large"] * 4)
    assert len(origin(plan).outputs["nodes_updated"]) == 4


def test_profile_only_keeps_the_profile_of_the_members(cluster: Cluster, large: Profile) -> None:
    run("CLUSTER_UPDATE", cluster, new_profile_id=str(large.uuid), profile_only=True)
    assert (reload(cluster).profile, flavors()) == (large, ["small"] * 4)
    run("CLUSTER_SCALE_OUT", cluster)
    assert flavors() == [*["small"] * 4, "large"]


def test_profile_of_a_cluster_without_nodes_is_updated(large: Profile) -> None:
    cluster = make_cluster()
    assert run("CLUSTER_UPDATE", cluster, new_profile_id=str(large.uuid)).state == "SUCCEEDED"
    assert reload(cluster).profile == large


def test_nodes_are_updated_in_the_batches_of_the_policy(cluster: Cluster, large: Profile) -> None:
    attach_batch_policy(cluster, min_in_service=1, max_batch_size=2, pause_time=0)
    plan = run("CLUSTER_UPDATE", cluster, new_profile_id=str(large.uuid))
    assert (plan.state, flavors(), statuses(cluster)) == ("SUCCEEDED", ["large"] * 4, ["ACTIVE"] * 4)
    assert origin(plan).events.filter(event="go_on").count() == 2


def test_next_batch_starts_after_the_pause_without_occupying_a_worker(cluster: Cluster, large: Profile) -> None:
    attach_batch_policy(cluster, max_batch_size=3, pause_time=3600)
    plan = proposed("CLUSTER_UPDATE", cluster, new_profile_id=str(large.uuid))
    run_ready_actions()
    assert sorted(flavors()) == ["large", "large", "large", "small"]
    assert list(plan.actions.values_list("state", flat=True)).count("PENDING") == 2
    Action.objects.update(due_time=None)
    run_waiting()
    assert (ActionPlan.objects.get(pk=plan.pk).state, flavors()) == ("SUCCEEDED", ["large"] * 4)


def test_failed_batch_is_the_last(cluster: Cluster, large: Profile) -> None:
    attach_batch_policy(cluster, max_batch_size=2, pause_time=0)
    Flavor.objects.filter(name="large").update(vcpus=999)
    plan = run("CLUSTER_UPDATE", cluster, new_profile_id=str(large.uuid))
    assert (plan.state, derived(plan)) == ("FAILED", [("NODE_UPDATE", "FAILED")] * 2)
    assert (reload(cluster).status, statuses(cluster)) == ("ACTIVE", ["ACTIVE"] * 4)


def test_failed_update_can_be_repeated(cluster: Cluster, large: Profile) -> None:
    Flavor.objects.filter(name="large").update(vcpus=999)
    run("CLUSTER_UPDATE", cluster, new_profile_id=str(large.uuid))
    Flavor.objects.filter(name="large").update(vcpus=2)
    assert run("CLUSTER_UPDATE", cluster, new_profile_id=str(large.uuid)).state == "SUCCEEDED"
    assert flavors() == ["large"] * 4


def test_member_deleted_before_its_batch_is_omitted(cluster: Cluster, large: Profile) -> None:
    attach_batch_policy(cluster, max_batch_size=3, pause_time=3600)
    proposed("CLUSTER_UPDATE", cluster, new_profile_id=str(large.uuid))
    run_ready_actions()
    Node.objects.filter(pk=cluster.members()[3].pk).soft_delete()
    Action.objects.update(due_time=None)
    run_waiting()
    assert sorted(flavors()) == ["large", "large", "large", "small"]


def test_unknown_profile_is_refused(cluster: Cluster, large: Profile) -> None:
    Profile.objects.filter(pk=large.pk).soft_delete()
    plan = run("CLUSTER_UPDATE", cluster, new_profile_id=str(large.uuid))
    assert f"new_profile_id: there is no profile {large.uuid}" in origin(plan).status_message
    assert (reload(cluster).profile, reload(cluster).status) == (cluster.profile, "ACTIVE")


@pytest.mark.parametrize("inputs", [{"name": ""}, {"timeout": -1}, {"metadata": "x"}, {"profile_only": 1}, {"x": 1}])
def test_invalid_inputs_are_refused(inputs: dict[str, object]) -> None:
    cluster = make_cluster()
    assert "Invalid input parameters" in origin(run("CLUSTER_UPDATE", cluster, **inputs)).status_message


def test_update_puts_the_replacing_servers_into_the_pool(cluster: Cluster) -> None:
    make_balancing_pool("web")
    policy = make_policy(type=LoadBalancing.name, spec={"pool": {"id": "web"}})
    run("CLUSTER_ATTACH_POLICY", cluster, policy_id=str(policy.uuid))
    other = make_profile("other", spec={"flavor": "small", "metadata": {"a": "b"}})
    assert run("CLUSTER_UPDATE", cluster, new_profile_id=str(other.uuid)).state == "SUCCEEDED"
    pooled = {str(member.server) for member in balancer().members("web")}
    assert pooled == set(map(str, Server.objects.present().values_list("uuid", flat=True)))
    assert len(pooled) == 4


def test_planned_update_starts_the_next_batch_after_the_pause(cluster: Cluster, large: Profile) -> None:
    attach_batch_policy(cluster, max_batch_size=2, pause_time=3600)
    operation = update_cluster(cluster, {"profile": "large"}, options=RequestOptions(plan_only=True))
    plan = ActionPlan.objects.get(uuid=operation.action_plan)
    assert plan.actions.filter(action_type="NODE_UPDATE").count() == 2
    plan.launch()
    run_ready_actions()
    assert flavors() == ["large", "large", "small", "small"]
    Action.objects.update(due_time=None)
    run_waiting()
    assert (ActionPlan.objects.get(pk=plan.pk).state, flavors()) == ("SUCCEEDED", ["large"] * 4)


def test_planned_update_keeps_members_skipped_in_the_first_batch(cluster: Cluster, large: Profile) -> None:
    attach_batch_policy(cluster, max_batch_size=2, pause_time=3600)
    operation = update_cluster(cluster, {"profile": "large"}, options=RequestOptions(plan_only=True))
    plan = ActionPlan.objects.get(uuid=operation.action_plan)
    skip_actions(plan, plan.actions.filter(action_type="NODE_UPDATE").values_list("uuid", flat=True), "alice", "")
    plan.launch()
    run_ready_actions()
    Action.objects.update(due_time=None)
    run_waiting()
    assert (ActionPlan.objects.get(pk=plan.pk).state, flavors()) == ("SUCCEEDED", ["small", "small", "large", "large"])


def test_planned_batches_depend_on_the_previous_batch(cluster: Cluster, large: Profile) -> None:
    attach_batch_policy(cluster, max_batch_size=2, pause_time=0)
    operation = update_cluster(cluster, {"profile": "large"}, options=RequestOptions(plan_only=True))
    plan = ActionPlan.objects.get(uuid=operation.action_plan)
    updates = plan.actions.filter(action_type="NODE_UPDATE").order_by("pk")
    of_updates = [one.parents.filter(action_type="NODE_UPDATE").count() for one in updates]
    assert of_updates == [0, 0, 2, 2]
    plan.launch()
    run_waiting()
    assert (ActionPlan.objects.get(pk=plan.pk).state, flavors()) == ("SUCCEEDED", ["large"] * 4)
    assert plan.actions.count() == 5
