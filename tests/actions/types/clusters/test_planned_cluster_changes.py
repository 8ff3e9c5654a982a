"""Planned cluster actions: decisions made at planning are executed if they still fit the cluster."""

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.operations.skipping import skip_action
from actions.types.base import ActionContext, make
from cluster.models import Cluster, Node
from plans.models import ActionPlan
from plans.planning.proposals import propose
from tests.actions.types.clusters.builders import origin, reload
from tests.builders import make_cluster, make_member, make_node, make_policy
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db


def planned(kind: str, cluster: Cluster, **inputs: Any) -> ActionPlan:
    """Return a plan that is not started, with the decision and the planned node actions."""
    uuid = uuid4()
    parameters = {"resource_id": str(cluster.uuid), "resource_name": cluster.name, **inputs}
    context = ActionContext(action_uuid=str(uuid))
    nodes = make(kind, parameters, context).plan()  # type: ignore[attr-defined]
    action = ProposedAction(kind, parameters, uuid=uuid, data=context.data)
    return propose([action, *(replace(node, derived_from=uuid) for node in nodes)])


def start(plan: ActionPlan) -> Action:
    """Run a plan to its end, and return the action on the cluster."""
    ActionPlan.objects.get(pk=plan.pk).launch()
    run_waiting()
    return origin(plan)


def skip(plan: ActionPlan, uuid: str) -> None:
    skip_action(Action.objects.get(action_plan=plan, target=uuid).uuid, by="alice")


def members(cluster: Cluster) -> list[int]:
    return list(cluster.members().values_list("index", flat=True))


def node(cluster: Cluster, index: int) -> Node:
    found: Node = cluster.members().get(index=index)
    return found


def candidates(plan: ActionPlan) -> list[str]:
    found: list[str] = origin(plan).data["deletion"]["candidates"]
    return found


def refusal(action: Action) -> str:
    assert action.state == "FAILED"
    ended = Action.objects.filter(derived_from=action).values_list("state", flat=True)
    assert not {"SUCCEEDED", "ONGOING", "PENDING"} & set(ended)
    return str(action.status_message).removeprefix("Action failed in execute: ")


def test_planning_does_not_change_the_cluster() -> None:
    cluster = make_cluster(size=3)
    plan = planned("CLUSTER_SCALE_IN", cluster, count=2)
    assert (reload(cluster).status, reload(cluster).desired_capacity, members(cluster)) == ("ACTIVE", 3, [1, 2, 3])
    assert set(Action.objects.filter(action_plan=plan).values_list("action_type", flat=True)) == {
        "CLUSTER_SCALE_IN",
        "NODE_DELETE",
    }


def test_planned_candidates_are_removed() -> None:
    cluster = make_cluster(size=4)
    plan = planned("CLUSTER_SCALE_IN", cluster, count=2)
    going = set(candidates(plan))
    cluster.members().exclude(uuid__in=going).update(tainted=True)
    assert start(plan).state == "SUCCEEDED"
    assert set(Node.objects.exclude(deleted_at=None).values_list("uuid", flat=True)) == {UUID(uuid) for uuid in going}
    assert reload(cluster).desired_capacity == 2


def test_node_whose_deletion_was_skipped_stays_and_counts() -> None:
    cluster = make_cluster(size=3)
    plan = planned("CLUSTER_SCALE_IN", cluster, count=2)
    skip(plan, candidates(plan)[0])
    assert start(plan).state == "SUCCEEDED"
    assert (len(members(cluster)), reload(cluster).desired_capacity, reload(cluster).status) == (2, 2, "ACTIVE")


def test_skipped_deletion_satisfies_a_larger_min_size() -> None:
    cluster = make_cluster(size=3)
    plan = planned("CLUSTER_SCALE_IN", cluster, count=2)
    Cluster.objects.update(min_size=2)
    skip(plan, candidates(plan)[0])
    assert start(plan).state == "SUCCEEDED"


def test_candidate_deleted_meanwhile_is_skipped_and_counts() -> None:
    cluster = make_cluster(size=3)
    plan = planned("CLUSTER_SCALE_IN", cluster, count=2)
    Node.objects.filter(uuid=candidates(plan)[0]).soft_delete()
    assert start(plan).state == "SUCCEEDED"
    assert (len(members(cluster)), reload(cluster).desired_capacity) == (1, 1)
    assert Action.objects.filter(action_plan=plan, state="SKIPPED").count() == 1


def test_scale_in_is_refused_if_a_candidate_left_the_cluster() -> None:
    cluster = make_cluster(size=3)
    plan = planned("CLUSTER_SCALE_IN", cluster, count=1)
    uuid = candidates(plan)[0]
    Node.objects.filter(uuid=uuid).update(cluster=None, index=-1)
    assert refusal(start(plan)) == (f"Node {uuid}, which was to go, is no longer a member of cluster {cluster.uuid}.")
    assert Node.objects.get(uuid=uuid).status == "ACTIVE"
    assert (reload(cluster).status, reload(cluster).desired_capacity) == ("ACTIVE", 3)


def test_scale_in_is_refused_if_min_size_was_increased() -> None:
    cluster = make_cluster(size=3)
    plan = planned("CLUSTER_SCALE_IN", cluster, count=2)
    Cluster.objects.update(min_size=2)
    assert refusal(start(plan)) == "The target capacity (1) is less than the cluster's min_size (2)."
    assert members(cluster) == [1, 2, 3]


@pytest.mark.parametrize(
    ("adjustment", "number", "change"), [("EXACT_CAPACITY", 2, -2), ("CHANGE_IN_PERCENTAGE", -50, -2)]
)
def test_resize_is_refused_if_the_change_would_differ_from_the_plan(adjustment: str, number: int, change: int) -> None:
    cluster = make_cluster(size=4)
    plan = planned("CLUSTER_RESIZE", cluster, adjustment_type=adjustment, number=number)
    for index in (5, 6):
        make_member(f"new-{index}", status="ACTIVE", cluster=cluster, index=index)
    came_to = {"EXACT_CAPACITY": -4, "CHANGE_IN_PERCENTAGE": -3}[adjustment]
    words = f"The cluster has 6 nodes: it would be resized by {came_to}, not by {change}."
    assert refusal(start(plan)) == words
    assert len(members(cluster)) == 6


def test_resize_completes_a_change_that_happened_in_part() -> None:
    cluster = make_cluster(size=4)
    plan = planned("CLUSTER_RESIZE", cluster, adjustment_type="EXACT_CAPACITY", number=2)
    Node.objects.filter(uuid=candidates(plan)[0]).soft_delete()
    assert start(plan).state == "SUCCEEDED"
    assert (len(members(cluster)), reload(cluster).desired_capacity) == (2, 2)


def test_planned_resize_creates_its_new_nodes() -> None:
    make_node()
    cluster = make_cluster(size=1)
    plan = planned("CLUSTER_RESIZE", cluster, adjustment_type="EXACT_CAPACITY", number=3)
    assert start(plan).state == "SUCCEEDED"
    assert (len(members(cluster)), reload(cluster).status) == (3, "ACTIVE")


def test_add_nodes_is_refused_if_a_node_joined_another_cluster() -> None:
    cluster, other = make_cluster(), make_cluster("other")
    alone = make_member("alone", status="ACTIVE")
    plan = planned("CLUSTER_ADD_NODES", cluster, nodes=[str(alone.uuid)])
    Node.objects.filter(pk=alone.pk).update(cluster=other, index=1)
    assert refusal(start(plan)) == f"Node {alone.uuid} is already owned by cluster {other.uuid}."


def test_node_whose_join_was_skipped_stays_without_a_cluster() -> None:
    cluster = make_cluster()
    alone = [make_member(f"alone-{number}", status="ACTIVE") for number in range(2)]
    plan = planned("CLUSTER_ADD_NODES", cluster, nodes=[str(one.uuid) for one in alone])
    skip(plan, str(alone[0].uuid))
    assert start(plan).state == "SUCCEEDED"
    assert (len(members(cluster)), reload(cluster).desired_capacity) == (1, 1)


def test_cluster_is_not_deleted_if_the_deletion_of_a_node_was_skipped() -> None:
    cluster = make_cluster(size=2)
    plan = planned("CLUSTER_DELETE", cluster)
    skip(plan, str(node(cluster, 1).uuid))
    action = start(plan)
    assert action.outputs["error"] == f"Cluster {cluster.uuid} still has nodes: a cluster-1"
    assert (members(cluster), reload(cluster).deleted_at) == ([1], None)


def test_cluster_deletion_is_refused_if_a_node_left_the_cluster() -> None:
    cluster = make_cluster(size=2)
    plan = planned("CLUSTER_DELETE", cluster)
    left = node(cluster, 1)
    Node.objects.filter(pk=left.pk).update(cluster=None, index=-1)
    assert refusal(start(plan)) == (
        f"Node {left.uuid}, which was to go, is no longer a member of cluster {cluster.uuid}."
    )
    assert Node.objects.get(pk=left.pk).deleted_at is None


def test_later_policy_does_not_change_a_planned_decision() -> None:
    cluster = make_cluster(size=3)
    plan = planned("CLUSTER_SCALE_IN", cluster, count=1)
    policy = make_policy(type="senlin.policy.deletion-1.1", spec={"destroy_after_deletion": False})
    cluster.policy_bindings.create(policy=policy, priority=400)
    assert start(plan).data["deletion"]["destroy_after_deletion"] is True
