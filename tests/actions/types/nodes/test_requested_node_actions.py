"""Node actions that a person requested: the locks that they take, and the rules of the node's cluster."""

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
    """Return an action that is at work."""
    return make_plan({"a": []}, state="ONGOING").actions.get()


def execute(kind: str, node: Node | Cluster, uuid: str = "", **inputs: Any) -> Outcome:
    """Execute a requested action once."""
    context = ActionContext(action_uuid=uuid or str(make_action().uuid))
    return make(kind, {"resource_id": str(node.uuid), **inputs}, context).execute()


def run(kind: str, node: Node | Cluster, **inputs: Any) -> Action:
    """Run an action by its plan to its end."""
    plan = propose([ProposedAction(kind, {"resource_id": str(node.uuid), **inputs})])
    plan.launch()
    run_waiting()
    return Action.objects.get(action_plan=plan, derived_from=None)


def again(row: Any) -> Any:
    return type(row).objects.get(pk=row.pk)


def sizes(cluster: Cluster) -> tuple[int, int]:
    """Return how many nodes a cluster wants, and how many it has."""
    return again(cluster).desired_capacity, cluster.members().count()


# The locks


def test_a_node_of_a_cluster_that_something_is_done_to_is_left_alone() -> None:
    cluster, holder = make_cluster(size=1), make_action()
    take_lock(cluster, str(holder.uuid))
    words = f"Failed in locking cluster {cluster.uuid}: action {holder.uuid} is at work on it"
    assert execute("NODE_CHECK", cluster.members().get()) == Outcome(Answer.RETRY, words, lock_holder=holder.uuid)
    assert not Lock.objects.exclude(action=holder.uuid).exists()


def test_a_node_that_something_is_done_to_is_left_alone() -> None:
    cluster, holder = make_cluster(size=1), make_action()
    node = cluster.members().get()
    take_lock(node, str(holder.uuid))
    words = f"Failed in locking node {node.uuid}: action {holder.uuid} is at work on it"
    assert execute("NODE_CHECK", node) == Outcome(Answer.RETRY, words, lock_holder=holder.uuid)
    assert not find_holders(cluster)


def test_nodes_of_one_cluster_are_looked_at_at_the_same_time() -> None:
    cluster = make_cluster(size=2)
    for node in cluster.members():
        assert execute("NODE_CHECK", node).answer is Answer.OK
    assert len(find_holders(cluster)) == 2


def test_a_cluster_waits_for_what_is_done_to_one_of_its_nodes() -> None:
    cluster, holder = make_cluster(size=1), make_action()
    execute("NODE_CHECK", cluster.members().get(), str(holder.uuid))
    words = f"Failed in locking cluster {cluster.uuid}: action {holder.uuid} is at work on it"
    assert execute("CLUSTER_SCALE_OUT", cluster) == Outcome(Answer.RETRY, words, lock_holder=holder.uuid)


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED"])
def test_the_lock_of_an_action_that_ended_is_taken_over(state: str) -> None:
    node, holder = make_member(status="ACTIVE"), make_action()
    take_lock(node, str(holder.uuid))
    Action.objects.filter(pk=holder.pk).update(state=state)
    assert execute("NODE_CHECK", node).answer is Answer.OK
    assert not Lock.objects.filter(action=holder.uuid).exists()


def test_the_lock_of_an_action_that_is_no_more_is_taken_over() -> None:
    node, holder = make_member(status="ACTIVE"), make_action()
    take_lock(node, str(holder.uuid))
    holder.delete()
    assert execute("NODE_CHECK", node).answer is Answer.OK


def test_an_action_that_is_executed_again_has_its_locks_still() -> None:
    node, holder = make_cluster(size=1).members().get(), make_action()
    for _ in range(2):
        assert execute("NODE_CHECK", node, str(holder.uuid)).answer is Answer.OK
    assert Lock.objects.count() == 2


def test_an_action_that_lost_leaves_the_node_as_the_other_one_has_it() -> None:
    """It was deferred once too often while the other one is in the middle of its work."""
    node, holder = make_member(status="DELETING"), make_action()
    take_lock(node, str(holder.uuid))
    loser = make("NODE_DELETE", {"resource_id": str(node.uuid)}, ActionContext(action_uuid=str(make_action().uuid)))
    loser.execute()
    loser.post_condition()
    assert again(node).status == "DELETING"


def test_a_node_that_left_meanwhile_is_tried_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    node = make_cluster(size=1).members().get()
    found = [node, make_member()]
    check = make("NODE_CHECK", {"resource_id": str(node.uuid)}, ActionContext(action_uuid=str(make_action().uuid)))
    monkeypatch.setattr(check, "find", lambda: found.pop(0))
    assert check.execute().reason == f"Failed in locking node {node.uuid}: it has just joined or left a cluster"


# NODE_DELETE


def test_a_cluster_wants_one_node_less_when_a_person_deletes_one() -> None:
    cluster = make_cluster(size=3)
    assert run("NODE_DELETE", cluster.members()[1]).state == "SUCCEEDED"
    assert sizes(cluster) == (2, 2)
    assert (again(cluster).status, again(cluster).status_reason) == (
        "ACTIVE",
        "NODE_DELETE: number of active nodes is 2, as desired_capacity (2) says",
    )


def test_a_cluster_keeps_as_many_nodes_as_it_must_have() -> None:
    cluster = make_cluster(size=2, min_size=2)
    assert run("NODE_DELETE", cluster.members()[0]).status_message == (
        "Action failed in execute: The target capacity (1) is less than the cluster's min_size (2)."
    )
    assert sizes(cluster) == (2, 2)
    assert not cluster.members().exclude(status="ACTIVE").exists()


def test_a_node_that_is_being_deleted_does_not_count() -> None:
    cluster = make_cluster(size=3, min_size=2)
    first, second, _ = cluster.members()
    Node.objects.filter(pk=first.pk).update(status="DELETING")
    assert run("NODE_DELETE", second).state == "FAILED"
    assert again(second).status == "ACTIVE"


def test_a_cluster_that_has_too_many_nodes_may_lose_one() -> None:
    cluster = make_cluster(size=4, max_size=2)
    assert run("NODE_DELETE", cluster.members()[0]).state == "SUCCEEDED"


def test_a_deletion_that_failed_leaves_a_cluster_that_wants_as_many_as_before(settings: Settings) -> None:
    make_node()
    cluster = make_cluster(status="INIT", desired_capacity=1)
    run("CLUSTER_CREATE", cluster)
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1
    assert run("NODE_DELETE", cluster.members().get()).state == "FAILED"
    assert sizes(cluster) == (1, 1)
    assert (again(cluster).status, cluster.members().get().status) == ("WARNING", "ERROR")


class Noting(PolicyType):
    """Records its checks, and decides that a deleted node is to be replaced."""

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
def noting(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Notes:
    settings.POLICY_TYPES = [f"{__name__}.Noting"]
    monkeypatch.setattr(Noting, "noted", [])
    return Noting.noted


def attach(cluster: Cluster) -> None:
    cluster.policy_bindings.create(policy=make_policy(type="noting"), priority=1)


def test_the_policies_of_the_cluster_are_applied_to_the_node(noting: Notes) -> None:
    cluster = make_cluster(size=2)
    attach(cluster)
    run("NODE_DELETE", cluster.members()[0])
    assert noting == [("BEFORE", "NODE_DELETE", "a cluster-1"), ("AFTER", "NODE_DELETE", None)]


def test_a_policy_may_want_the_place_of_a_deleted_node_filled(noting: Notes) -> None:
    cluster = make_cluster(size=2)
    attach(cluster)
    run("NODE_DELETE", cluster.members()[0])
    assert sizes(cluster) == (2, 1)
    assert again(cluster).status == "WARNING"


def test_policies_are_not_applied_to_derived_actions(noting: Notes) -> None:
    make_node()
    cluster = make_cluster()
    attach(cluster)
    run("CLUSTER_SCALE_OUT", cluster)
    assert not noting


# NODE_CREATE


def test_a_new_node_joins_the_cluster_that_a_person_wants_it_in() -> None:
    make_node()
    cluster = make_cluster(size=1)
    node = make_member()
    assert run("NODE_CREATE", node, cluster_id=str(cluster.uuid)).state == "SUCCEEDED"
    current = again(node)
    assert (current.cluster, current.index, current.status) == (cluster, 2, "ACTIVE")
    assert (sizes(cluster), again(cluster).next_index) == ((2, 2), 3)


def test_a_node_does_not_join_a_cluster_that_is_full() -> None:
    make_node()
    cluster, node = make_cluster(size=1, max_size=1), make_member()
    assert run("NODE_CREATE", node, cluster_id=str(cluster.uuid)).status_message == (
        "Action failed in execute: The target capacity (2) is greater than the cluster's max_size (1)."
    )
    assert (again(node).cluster, again(node).status, Server.objects.count()) == (None, "INIT", 0)


def test_a_node_of_another_cluster_is_not_created_in_this_one() -> None:
    make_node()
    owner, other = make_cluster("owner"), make_cluster("other")
    node = make_member(cluster=owner, index=1)
    message = run("NODE_CREATE", node, cluster_id=str(other.uuid)).status_message
    assert message == f"Action failed in execute: Node {node.uuid} is already owned by cluster {owner.uuid}."


def test_a_node_whose_creation_fails_is_a_member_that_is_missed() -> None:
    cluster, node = make_cluster(size=1), make_member()
    assert run("NODE_CREATE", node, cluster_id=str(cluster.uuid)).state == "FAILED"
    assert (sizes(cluster), again(cluster).status, again(node).status) == ((2, 2), "WARNING", "ERROR")


def test_a_member_that_is_created_at_the_second_attempt_makes_the_cluster_want_no_more() -> None:
    make_node()
    cluster = make_cluster(size=1, status="WARNING", desired_capacity=2)
    node = make_member(status="ERROR", cluster=cluster, index=2)
    run("NODE_CREATE", node, cluster_id=str(cluster.uuid))
    assert (sizes(cluster), again(cluster).status) == ((2, 2), "ACTIVE")


def test_the_policies_of_the_cluster_are_applied_to_a_new_node(noting: Notes) -> None:
    make_node()
    cluster = make_cluster()
    attach(cluster)
    run("NODE_CREATE", make_member(), cluster_id=str(cluster.uuid))
    assert noting == [("BEFORE", "NODE_CREATE", "web"), ("AFTER", "NODE_CREATE", "web")]


# Others


def test_a_cluster_knows_what_a_person_found_out_about_a_node() -> None:
    cluster = make_cluster(size=2)
    run("NODE_CHECK", cluster.members()[0])
    assert again(cluster).status_reason == "NODE_CHECK: number of active nodes is 1, below desired_capacity (2)"


def test_a_node_that_stands_alone_is_deleted_as_it_ever_was() -> None:
    node = make_member(status="ACTIVE")
    assert run("NODE_DELETE", node).state == "SUCCEEDED"
    assert again(node).deleted_at
    assert ActionPlan.objects.get().state == "SUCCEEDED"
