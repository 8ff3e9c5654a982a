"""Requested (not derived) node actions: their locks, and the rules and policies of the node's cluster."""

from typing import Any

import pytest
from pytest_django import Settings

from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.types.base import ActionContext, Answer, Outcome, make
from actions.types.locking import find_holders, take_lock
from cluster.models import Cluster, Lock, Node, Server
from cluster.policies.base import PolicyCheck, PolicyType, When
from plans.models import ActionPlan
from plans.planning.proposals import propose
from tests.builders import make_cluster, make_member, make_node, make_plan, make_policy
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db
Notes = list[tuple[str, str, str | None]]


def make_action() -> Action:
    """Return an action of a running plan."""
    return make_plan({"a": []}, state="ONGOING").actions.get()


def execute(kind: str, node: Node | Cluster, uuid: str = "", **inputs: Any) -> Outcome:
    """Execute a requested action once."""
    context = ActionContext(action_uuid=uuid or str(make_action().uuid))
    return make(kind, {"resource_id": str(node.uuid), **inputs}, context).execute()


def run(kind: str, node: Node | Cluster, **inputs: Any) -> Action:
    """Run a plan with one action to its end, and return the action."""
    plan = propose([ProposedAction(kind, {"resource_id": str(node.uuid), **inputs})])
    plan.launch()
    run_waiting()
    return Action.objects.get(action_plan=plan, derived_from=None)


def reload(row: Any) -> Any:
    return type(row).objects.get(pk=row.pk)


def sizes(cluster: Cluster) -> tuple[int, int]:
    """Return the desired capacity of a cluster and the number of its nodes."""
    return reload(cluster).desired_capacity, cluster.members().count()


# Locks


def test_action_on_a_node_of_a_locked_cluster_is_deferred() -> None:
    cluster, holder = make_cluster(size=1), make_action()
    take_lock(cluster, str(holder.uuid))
    words = f"Failed in locking cluster {cluster.uuid}: action {holder.uuid} is at work on it"
    assert execute("NODE_CHECK", cluster.members().get()) == Outcome(Answer.RETRY, words, lock_holder=holder.uuid)
    assert not Lock.objects.exclude(action=holder.uuid).exists()


def test_action_on_a_locked_node_is_deferred_and_does_not_lock_the_cluster() -> None:
    cluster, holder = make_cluster(size=1), make_action()
    node = cluster.members().get()
    take_lock(node, str(holder.uuid))
    words = f"Failed in locking node {node.uuid}: action {holder.uuid} is at work on it"
    assert execute("NODE_CHECK", node) == Outcome(Answer.RETRY, words, lock_holder=holder.uuid)
    assert not find_holders(cluster)


def test_nodes_of_one_cluster_can_be_checked_concurrently() -> None:
    cluster = make_cluster(size=2)
    for node in cluster.members():
        assert execute("NODE_CHECK", node).answer is Answer.OK
    assert len(find_holders(cluster)) == 2


def test_cluster_action_is_deferred_while_a_node_is_locked() -> None:
    cluster, holder = make_cluster(size=1), make_action()
    execute("NODE_CHECK", cluster.members().get(), str(holder.uuid))
    words = f"Failed in locking cluster {cluster.uuid}: action {holder.uuid} is at work on it"
    assert execute("CLUSTER_SCALE_OUT", cluster) == Outcome(Answer.RETRY, words, lock_holder=holder.uuid)


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED"])
def test_lock_of_an_ended_action_is_taken_over(state: str) -> None:
    node, holder = make_member(status="ACTIVE"), make_action()
    take_lock(node, str(holder.uuid))
    Action.objects.filter(pk=holder.pk).update(state=state)
    assert execute("NODE_CHECK", node).answer is Answer.OK
    assert not Lock.objects.filter(action=holder.uuid).exists()


def test_lock_of_a_deleted_action_is_taken_over() -> None:
    node, holder = make_member(status="ACTIVE"), make_action()
    take_lock(node, str(holder.uuid))
    holder.delete()
    assert execute("NODE_CHECK", node).answer is Answer.OK


def test_repeated_action_keeps_its_locks() -> None:
    node, holder = make_cluster(size=1).members().get(), make_action()
    for _ in range(2):
        assert execute("NODE_CHECK", node, str(holder.uuid)).answer is Answer.OK
    assert Lock.objects.count() == 2


def test_action_without_the_lock_keeps_the_status_that_the_holder_set() -> None:
    """Its post_condition is called when it exceeds its retries, while the lock holder is still running."""
    node, holder = make_member(status="DELETING"), make_action()
    take_lock(node, str(holder.uuid))
    loser = make("NODE_DELETE", {"resource_id": str(node.uuid)}, ActionContext(action_uuid=str(make_action().uuid)))
    loser.execute()
    loser.post_condition()
    assert reload(node).status == "DELETING"


def test_action_on_a_node_that_just_left_its_cluster_is_deferred(monkeypatch: pytest.MonkeyPatch) -> None:
    node = make_cluster(size=1).members().get()
    found = [node, make_member()]
    check = make("NODE_CHECK", {"resource_id": str(node.uuid)}, ActionContext(action_uuid=str(make_action().uuid)))
    monkeypatch.setattr(check, "find", lambda: found.pop(0))
    assert check.execute().reason == f"Failed in locking node {node.uuid}: it has just joined or left a cluster"


# NODE_DELETE


def test_node_delete_decreases_the_desired_capacity() -> None:
    cluster = make_cluster(size=3)
    assert run("NODE_DELETE", cluster.members()[1]).state == "SUCCEEDED"
    assert sizes(cluster) == (2, 2)
    assert (reload(cluster).status, reload(cluster).status_reason) == (
        "ACTIVE",
        "NODE_DELETE: number of active nodes is 2, as desired_capacity (2) says",
    )


def test_node_delete_below_min_size_is_refused() -> None:
    cluster = make_cluster(size=2, min_size=2)
    assert run("NODE_DELETE", cluster.members()[0]).status_message == (
        "Action failed in execute: The target capacity (1) is less than the cluster's min_size (2)."
    )
    assert sizes(cluster) == (2, 2)
    assert not cluster.members().exclude(status="ACTIVE").exists()


def test_node_in_deletion_does_not_count_for_min_size() -> None:
    cluster = make_cluster(size=3, min_size=2)
    first, second, _ = cluster.members()
    Node.objects.filter(pk=first.pk).update(status="DELETING")
    assert run("NODE_DELETE", second).state == "FAILED"
    assert reload(second).status == "ACTIVE"


def test_node_delete_is_allowed_in_a_cluster_above_max_size() -> None:
    cluster = make_cluster(size=4, max_size=2)
    assert run("NODE_DELETE", cluster.members()[0]).state == "SUCCEEDED"


def test_failed_node_delete_keeps_the_desired_capacity(settings: Settings) -> None:
    make_node()
    cluster = make_cluster(status="INIT", desired_capacity=1)
    run("CLUSTER_CREATE", cluster)
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1
    assert run("NODE_DELETE", cluster.members().get()).state == "FAILED"
    assert sizes(cluster) == (1, 1)
    assert (reload(cluster).status, cluster.members().get().status) == ("WARNING", "ERROR")


class RecordingPolicy(PolicyType):
    """A policy that records its checks, and keeps the desired capacity when a node is deleted."""

    name = "noting"
    description = "for tests"
    priority = 1
    targets = {when: frozenset({"NODE_DELETE", "NODE_CREATE"}) for when in When}
    schema = {"type": "object"}
    noted: Notes = []

    def pre_op(self, check: PolicyCheck) -> None:
        self.noted.append(("BEFORE", check.action_type, check.node and check.node.name))
        check.data["deletion"] = {"reduce_desired_capacity": False}

    def post_op(self, check: PolicyCheck) -> None:
        self.noted.append(("AFTER", check.action_type, check.node and check.node.name))


@pytest.fixture
def checks(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Notes:
    settings.POLICY_TYPES = [f"{__name__}.RecordingPolicy"]
    monkeypatch.setattr(RecordingPolicy, "noted", [])
    return RecordingPolicy.noted


def attach(cluster: Cluster) -> None:
    cluster.policy_bindings.create(policy=make_policy(type="noting"), priority=1)


def test_cluster_policies_are_applied_to_node_delete(checks: Notes) -> None:
    cluster = make_cluster(size=2)
    attach(cluster)
    run("NODE_DELETE", cluster.members()[0])
    assert checks == [("BEFORE", "NODE_DELETE", "a cluster-1"), ("AFTER", "NODE_DELETE", None)]


def test_policy_can_keep_the_desired_capacity_when_a_node_is_deleted(checks: Notes) -> None:
    cluster = make_cluster(size=2)
    attach(cluster)
    run("NODE_DELETE", cluster.members()[0])
    assert sizes(cluster) == (2, 1)
    assert reload(cluster).status == "WARNING"


def test_policies_are_not_applied_to_derived_actions(checks: Notes) -> None:
    make_node()
    cluster = make_cluster()
    attach(cluster)
    run("CLUSTER_SCALE_OUT", cluster)
    assert not checks


# NODE_CREATE


def test_created_node_joins_the_requested_cluster() -> None:
    make_node()
    cluster = make_cluster(size=1)
    node = make_member()
    assert run("NODE_CREATE", node, cluster_id=str(cluster.uuid)).state == "SUCCEEDED"
    current = reload(node)
    assert (current.cluster, current.index, current.status) == (cluster, 2, "ACTIVE")
    assert (sizes(cluster), reload(cluster).next_index) == ((2, 2), 3)


def test_created_node_does_not_join_a_full_cluster() -> None:
    make_node()
    cluster, node = make_cluster(size=1, max_size=1), make_member()
    assert run("NODE_CREATE", node, cluster_id=str(cluster.uuid)).status_message == (
        "Action failed in execute: The target capacity (2) is greater than the cluster's max_size (1)."
    )
    assert (reload(node).cluster, reload(node).status, Server.objects.count()) == (None, "INIT", 0)


def test_node_of_another_cluster_is_refused() -> None:
    make_node()
    owner, other = make_cluster("owner"), make_cluster("other")
    node = make_member(cluster=owner, index=1)
    message = run("NODE_CREATE", node, cluster_id=str(other.uuid)).status_message
    assert message == f"Action failed in execute: Node {node.uuid} is already owned by cluster {owner.uuid}."


def test_failed_node_create_leaves_a_member_in_error_and_the_cluster_in_warning() -> None:
    cluster, node = make_cluster(size=1), make_member()
    assert run("NODE_CREATE", node, cluster_id=str(cluster.uuid)).state == "FAILED"
    assert (sizes(cluster), reload(cluster).status, reload(node).status) == ((2, 2), "WARNING", "ERROR")


def test_repeated_node_create_does_not_increase_the_desired_capacity_again() -> None:
    make_node()
    cluster = make_cluster(size=1, status="WARNING", desired_capacity=2)
    node = make_member(status="ERROR", cluster=cluster, index=2)
    run("NODE_CREATE", node, cluster_id=str(cluster.uuid))
    assert (sizes(cluster), reload(cluster).status) == ((2, 2), "ACTIVE")


def test_cluster_policies_are_applied_to_node_create(checks: Notes) -> None:
    make_node()
    cluster = make_cluster()
    attach(cluster)
    run("NODE_CREATE", make_member(), cluster_id=str(cluster.uuid))
    assert checks == [("BEFORE", "NODE_CREATE", "web"), ("AFTER", "NODE_CREATE", "web")]


# Other actions


def test_node_check_updates_the_status_reason_of_the_cluster() -> None:
    cluster = make_cluster(size=2)
    run("NODE_CHECK", cluster.members()[0])
    assert reload(cluster).status_reason == "NODE_CHECK: number of active nodes is 1, below desired_capacity (2)"


def test_node_without_a_cluster_is_deleted() -> None:
    node = make_member(status="ACTIVE")
    assert run("NODE_DELETE", node).state == "SUCCEEDED"
    assert reload(node).deleted_at
    assert ActionPlan.objects.get().state == "SUCCEEDED"
