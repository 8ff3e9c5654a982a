"""Scale-in, resize and deletion of clusters, and nodes that join and leave: results and refusals."""

from typing import Any

import pytest
from pytest_django import Settings

from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.types.clusters.cluster_delete import ClusterDelete
from cluster.models import BalancingPool, Cluster, Node, Server
from cluster.policies.checking import load_policy
from plans.applier.applier import Applier
from plans.models import ActionPlan
from plans.planning.proposals import propose
from tests.builders import make_balancing_pool, make_binding, make_cluster, make_member, make_node, make_policy
from tests.plans.applier.test_retries import advance, make_due
from tests.plans.inline import InlineExecutor, run_waiting

pytestmark = pytest.mark.django_db


def proposed(kind: str, cluster: Cluster | Node, **inputs: Any) -> ActionPlan:
    parameters = {"resource_id": str(cluster.uuid), "resource_name": cluster.name, **inputs}
    plan = propose([ProposedAction(kind, parameters)])
    plan.launch()
    return plan


def run(kind: str, cluster: Cluster | Node, **inputs: Any) -> Action:
    """Run a plan with one action to its end, and return the action."""
    plan = proposed(kind, cluster, **inputs)
    run_waiting()
    return Action.objects.get(action_plan=plan, derived_from=None)


def reload(cluster: Cluster) -> Cluster:
    return Cluster.objects.get(pk=cluster.pk)


def members(cluster: Cluster) -> list[int]:
    return list(cluster.members().values_list("index", flat=True))


def uuid_of(cluster: Cluster, index: int) -> str:
    return str(cluster.members().get(index=index).uuid)


def refusal(action: Action) -> str:
    """Return the reason why an action failed before it derived any action."""
    assert (action.state, Action.objects.filter(derived_from=action).count()) == ("FAILED", 0)
    return str(action.status_message).removeprefix("Action failed in execute: ")


def derived_types() -> list[str]:
    return list(Action.objects.filter(derived_from__isnull=False).order_by("pk").values_list("action_type", flat=True))


# CLUSTER_SCALE_IN


def test_scale_in_removes_the_requested_count() -> None:
    make_node()
    cluster = make_cluster(status="INIT", desired_capacity=3)
    run("CLUSTER_CREATE", cluster)
    action = run("CLUSTER_SCALE_IN", cluster, count=2)
    assert (action.state, len(action.outputs["nodes_removed"])) == ("SUCCEEDED", 2)
    assert (reload(cluster).desired_capacity, len(members(cluster)), reload(cluster).status) == (1, 1, "ACTIVE")
    assert Server.objects.present().count() == 1


def test_scale_in_removes_one_node_by_default() -> None:
    cluster = make_cluster(size=3)
    run("CLUSTER_SCALE_IN", cluster)
    assert (reload(cluster).desired_capacity, len(members(cluster))) == (2, 2)


def test_scale_in_removes_unhealthy_nodes_first() -> None:
    cluster = make_cluster(size=4)
    cluster.members().filter(index=2).update(tainted=True)
    cluster.members().filter(index=3).update(status="ERROR")
    run("CLUSTER_SCALE_IN", cluster, count=2)
    assert members(cluster) == [1, 4]


def test_decision_is_stored_in_the_data_of_the_action() -> None:
    cluster = make_cluster(size=2)
    cluster.members().filter(index=2).update(tainted=True)
    uuid = uuid_of(cluster, 2)
    assert run("CLUSTER_SCALE_IN", cluster).data["deletion"] == {
        "count": 1,
        "candidates": [uuid],
        "destroy_after_deletion": True,
        "grace_period": 0,
        "reduce_desired_capacity": True,
    }


def test_scale_in_below_min_size_is_refused() -> None:
    cluster = make_cluster(size=3, min_size=2)
    words = "The target capacity (1) is less than the cluster's min_size (2)."
    assert refusal(run("CLUSTER_SCALE_IN", cluster, count=2)) == words
    assert (reload(cluster).status, reload(cluster).desired_capacity, len(members(cluster))) == ("ACTIVE", 3, 3)


def test_scale_in_by_more_than_the_number_of_nodes_removes_all() -> None:
    cluster = make_cluster(size=2)
    assert run("CLUSTER_SCALE_IN", cluster, count=9).state == "SUCCEEDED"
    assert members(cluster) == []


def test_cluster_above_max_size_can_scale_in() -> None:
    cluster = make_cluster(size=5, max_size=2)
    assert run("CLUSTER_SCALE_IN", cluster, count=1).state == "SUCCEEDED"


def test_failed_node_deletion_fails_the_scale_in_and_keeps_the_node_in_error(settings: Settings) -> None:
    make_node()
    cluster = make_cluster(status="INIT", desired_capacity=2)
    run("CLUSTER_CREATE", cluster)
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1
    action = run("CLUSTER_SCALE_IN", cluster, count=1)
    assert (action.state, action.outputs["nodes_removed"]) == ("FAILED", [])
    assert (reload(cluster).status, reload(cluster).desired_capacity, len(members(cluster))) == ("ACTIVE", 1, 2)
    assert cluster.members().filter(status="ERROR").count() == 1


# Decisions of policies


def decided(cluster: Cluster, kind: str = "CLUSTER_SCALE_IN", **deletion: Any) -> ActionPlan:
    """Return a plan whose action has a part of the decision in its data, as policies store it."""
    plan = proposed(kind, cluster)
    Action.objects.filter(action_plan=plan).update(data={"deletion": deletion})
    return plan


def test_decision_without_destroy_after_deletion_keeps_the_nodes() -> None:
    cluster = make_cluster(size=2)
    uuid = uuid_of(cluster, 1)
    decided(cluster, count=1, candidates=[uuid], destroy_after_deletion=False)
    run_waiting()
    node = Node.objects.get(uuid=uuid)
    assert (node.cluster, node.index, node.status, node.deleted_at) == (None, -1, "ACTIVE", None)
    assert (derived_types(), members(cluster)) == (["NODE_LEAVE"], [2])


def test_decision_without_reduce_desired_capacity_keeps_the_desired_capacity() -> None:
    cluster = make_cluster(size=2)
    decided(cluster, count=1, reduce_desired_capacity=False)
    run_waiting()
    assert (reload(cluster).desired_capacity, len(members(cluster)), reload(cluster).status) == (2, 1, "WARNING")


def test_nodes_are_removed_after_the_grace_period() -> None:
    cluster = make_cluster(size=2)
    plan = decided(cluster, count=1, grace_period=3600)
    applier = Applier(InlineExecutor())
    advance(applier)
    assert (len(members(cluster)), reload(cluster).status, applier.jobs) == (2, "RESIZING", 0)
    make_due(plan, applier)
    advance(applier)
    assert (len(members(cluster)), reload(cluster).status) == (1, "ACTIVE")


def deleted_after_an_hour() -> tuple[Cluster, ActionPlan]:
    """Return a cluster with a grace period, and the plan of a NODE_DELETE of one of its nodes."""
    cluster = make_cluster(size=2)
    policy = make_policy(type="senlin.policy.deletion-1.1", spec={"grace_period": 3600})
    cluster.policy_bindings.create(policy=policy, priority=400)
    return cluster, proposed("NODE_DELETE", cluster.members()[0])


def test_node_delete_waits_for_the_grace_period() -> None:
    cluster, plan = deleted_after_an_hour()
    applier = Applier(InlineExecutor())
    advance(applier)
    assert (members(cluster), reload(cluster).desired_capacity, applier.jobs) == ([1, 2], 2, 0)
    make_due(plan, applier)
    advance(applier)
    assert (members(cluster), reload(cluster).desired_capacity, reload(cluster).status) == ([2], 1, "ACTIVE")
    assert ActionPlan.objects.get(pk=plan.pk).state == "SUCCEEDED"


def test_node_delete_cancelled_in_its_grace_period_keeps_the_node() -> None:
    cluster, plan = deleted_after_an_hour()
    applier = Applier(InlineExecutor())
    advance(applier)
    ActionPlan.objects.get(pk=plan.pk).abandon("alice")
    applier.next_poll = 0
    advance(applier)
    assert ActionPlan.objects.get(pk=plan.pk).state == "CANCELLED"
    assert (members(cluster), reload(cluster).desired_capacity, reload(cluster).status) == ([1, 2], 2, "WARNING")
    assert cluster.members()[0].status_reason == "Its deletion was interrupted"


# CLUSTER_RESIZE


@pytest.mark.parametrize(
    ("inputs", "size"),
    [
        ({"adjustment_type": "EXACT_CAPACITY", "number": 2}, 2),
        ({"adjustment_type": "EXACT_CAPACITY", "number": 5}, 5),
        ({"adjustment_type": "EXACT_CAPACITY", "number": 4}, 4),
        ({"adjustment_type": "CHANGE_IN_CAPACITY", "number": -3}, 1),
        ({"adjustment_type": "CHANGE_IN_CAPACITY", "number": 1}, 5),
        ({"adjustment_type": "CHANGE_IN_PERCENTAGE", "number": -50}, 2),
        ({"adjustment_type": "CHANGE_IN_PERCENTAGE", "number": 10, "min_step": 2}, 6),
        ({"adjustment_type": "CHANGE_IN_CAPACITY", "number": -9, "strict": False}, 0),
        ({"adjustment_type": "EXACT_CAPACITY", "number": 9, "max_size": 5, "strict": False}, 5),
        ({"min_size": 6, "strict": False}, 6),
        ({"max_size": 9}, 4),
    ],
)
def test_resize_sets_the_requested_size(inputs: dict[str, Any], size: int) -> None:
    make_node(vcpus=99)
    cluster = make_cluster(size=4)
    assert run("CLUSTER_RESIZE", cluster, **inputs).state == "SUCCEEDED"
    current = reload(cluster)
    assert (current.desired_capacity, len(members(cluster)), current.status) == (size, size, "ACTIVE")


def test_resize_stores_new_bounds() -> None:
    cluster = make_cluster(size=4)
    run("CLUSTER_RESIZE", cluster, adjustment_type="EXACT_CAPACITY", number=2, min_size=1, max_size=3)
    current = reload(cluster)
    assert (current.min_size, current.max_size, current.desired_capacity) == (1, 3, 2)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({}, "adjustment_type: is required unless min_size or max_size is given."),
        ({"number": 1}, "adjustment_type: is required with number."),
        ({"adjustment_type": "EXACT_CAPACITY"}, "number: is required with adjustment_type."),
        ({"adjustment_type": "CHANGE_IN_CAPACITY", "number": 0}, "number: must not be 0."),
        ({"adjustment_type": "CHANGE_IN_PERCENTAGE", "number": 0}, "number: must not be 0."),
        ({"adjustment_type": "EXACT_CAPACITY", "number": -1}, "number: must not be below 0."),
        ({"adjustment_type": "EXACT_CAPACITY", "number": 1.5}, "number: must be a whole number of nodes."),
        (
            {"adjustment_type": "CHANGE_IN_PERCENTAGE", "number": 10000},
            "number: must be a percentage from -1000 to 1000.",
        ),
        (
            {"adjustment_type": "CHANGE_IN_CAPACITY", "number": -3},
            "The target capacity (-1) is less than the cluster's min_size (1).",
        ),
        (
            {"adjustment_type": "CHANGE_IN_CAPACITY", "number": 2},
            "The target capacity (4) is greater than the cluster's max_size (3).",
        ),
        ({"min_size": 3}, "The target capacity (2) is less than the cluster's min_size (3)."),
        ({"min_size": 4}, "min_size: 4 is above the max_size 3."),
    ],
)
def test_invalid_size_is_refused(inputs: dict[str, Any], words: str) -> None:
    cluster = make_cluster(size=2, min_size=1, max_size=3)
    assert refusal(run("CLUSTER_RESIZE", cluster, **inputs)) == words
    current = reload(cluster)
    assert (current.min_size, current.max_size, current.desired_capacity, len(members(cluster))) == (1, 3, 2, 2)


# CLUSTER_DEL_NODES


def test_del_nodes_removes_the_named_nodes() -> None:
    cluster = make_cluster(size=3)
    named = [uuid_of(cluster, 1), uuid_of(cluster, 3)]
    assert run("CLUSTER_DEL_NODES", cluster, nodes=named).outputs["nodes_removed"] == named
    assert (members(cluster), reload(cluster).desired_capacity, derived_types()) == ([2], 1, ["NODE_LEAVE"] * 2)


def test_del_nodes_deletes_the_nodes_if_requested() -> None:
    cluster = make_cluster(size=2)
    run("CLUSTER_DEL_NODES", cluster, nodes=[uuid_of(cluster, 1)], destroy_after_deletion=True)
    assert (members(cluster), derived_types()) == ([2], ["NODE_DELETE"])


def test_del_nodes_refuses_a_node_of_another_cluster() -> None:
    cluster, other = make_cluster(size=1), make_cluster("other", size=1)
    words = f"Node {uuid_of(other, 1)} is not a member of cluster {cluster.uuid}."
    assert refusal(run("CLUSTER_DEL_NODES", cluster, nodes=[uuid_of(other, 1)])) == words


def test_del_nodes_refuses_an_unknown_node() -> None:
    cluster = make_cluster(size=1)
    words = f"Node {cluster.uuid} not found"
    assert refusal(run("CLUSTER_DEL_NODES", cluster, nodes=[str(cluster.uuid)])) == words


def test_del_nodes_below_min_size_is_refused() -> None:
    cluster = make_cluster(size=2, min_size=2)
    words = "The target capacity (1) is less than the cluster's min_size (2)."
    assert refusal(run("CLUSTER_DEL_NODES", cluster, nodes=[uuid_of(cluster, 1)])) == words


# CLUSTER_ADD_NODES


def test_add_nodes_adds_nodes_without_a_cluster() -> None:
    cluster = make_cluster(size=1)
    nodes = [make_member(f"alone-{number}", status="ACTIVE") for number in range(2)]
    named = [str(node.uuid) for node in nodes]
    assert run("CLUSTER_ADD_NODES", cluster, nodes=named).outputs["nodes_added"] == named
    current = reload(cluster)
    assert (current.desired_capacity, current.next_index, current.status) == (3, 4, "ACTIVE")
    assert list(cluster.members().values_list("name", flat=True)) == ["a cluster-1", "alone-0", "alone-1"]


def test_add_nodes_refuses_a_node_of_another_cluster() -> None:
    cluster, other = make_cluster(), make_cluster("other", size=1)
    words = f"Node {uuid_of(other, 1)} is already owned by cluster {other.uuid}."
    assert refusal(run("CLUSTER_ADD_NODES", cluster, nodes=[uuid_of(other, 1)])) == words


def test_add_nodes_refuses_a_node_in_error() -> None:
    cluster, node = make_cluster(), make_member(status="ERROR")
    words = f"Node {node.uuid} is ERROR: only an ACTIVE one joins a cluster."
    assert refusal(run("CLUSTER_ADD_NODES", cluster, nodes=[str(node.uuid)])) == words


def test_add_nodes_above_max_size_is_refused() -> None:
    cluster, node = make_cluster(size=1, max_size=1), make_member(status="ACTIVE")
    words = "The target capacity (2) is greater than the cluster's max_size (1)."
    assert refusal(run("CLUSTER_ADD_NODES", cluster, nodes=[str(node.uuid)])) == words


# CLUSTER_DELETE


def test_cluster_is_deleted_with_its_nodes() -> None:
    make_node()
    cluster = make_cluster(status="INIT", desired_capacity=2)
    run("CLUSTER_CREATE", cluster)
    assert run("CLUSTER_DELETE", cluster).state == "SUCCEEDED"
    assert reload(cluster).deleted_at
    assert not Node.objects.present().exists()
    assert not Server.objects.present().exists()


def test_cluster_without_nodes_is_deleted() -> None:
    cluster = make_cluster()
    assert run("CLUSTER_DELETE", cluster).state == "SUCCEEDED"
    assert reload(cluster).deleted_at


def test_cluster_deletion_fails_and_names_the_remaining_nodes(settings: Settings) -> None:
    make_node()
    cluster = make_cluster(status="INIT", desired_capacity=1)
    run("CLUSTER_CREATE", cluster)
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1
    action = run("CLUSTER_DELETE", cluster)
    words = f"Cluster {cluster.uuid} still has nodes: {cluster.members().get().name}"
    assert (action.state, action.outputs["error"]) == ("FAILED", words)
    assert (reload(cluster).deleted_at, reload(cluster).status) == (None, "WARNING")


def test_cluster_deletion_sets_the_desired_capacity_to_zero(settings: Settings) -> None:
    make_node()
    cluster = make_cluster(status="INIT", desired_capacity=1)
    run("CLUSTER_CREATE", cluster)
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1
    run("CLUSTER_DELETE", cluster)
    assert reload(cluster).desired_capacity == 0


def test_cluster_is_deleted_if_its_status_changed_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = make_cluster()
    detach = ClusterDelete.detach_policies

    def settled_meanwhile(self: ClusterDelete, current: Cluster) -> None:
        detach(self, current)
        Cluster.objects.update(status="ACTIVE")

    monkeypatch.setattr(ClusterDelete, "detach_policies", settled_meanwhile)
    assert run("CLUSTER_DELETE", cluster).state == "SUCCEEDED"
    assert reload(cluster).deleted_at


def test_cluster_whose_pool_was_deleted_is_deleted() -> None:
    make_node()
    cluster = make_cluster(status="INIT", desired_capacity=1)
    run("CLUSTER_CREATE", cluster)
    make_balancing_pool("web")
    load_policy(make_binding(cluster, "senlin.policy.loadbalance-1.3", {"pool": {"id": "web"}})).attach(cluster)
    BalancingPool.objects.all().soft_delete()
    assert run("CLUSTER_DELETE", cluster).state == "SUCCEEDED"
    assert reload(cluster).deleted_at


# NODE_JOIN and NODE_LEAVE


def test_node_join_increases_the_desired_capacity() -> None:
    cluster, node = make_cluster(size=1), make_member(status="ACTIVE")
    assert run("NODE_JOIN", node, cluster_id=str(cluster.uuid)).state == "SUCCEEDED"
    assert (members(cluster), reload(cluster).desired_capacity, reload(cluster).next_index) == ([1, 2], 2, 3)


def test_node_join_above_max_size_is_refused() -> None:
    cluster, node = make_cluster(size=1, max_size=1), make_member(status="ACTIVE")
    words = "The target capacity (2) is greater than the cluster's max_size (1)."
    assert refusal(run("NODE_JOIN", node, cluster_id=str(cluster.uuid))) == words


def test_node_join_of_a_member_is_skipped() -> None:
    cluster = make_cluster(size=1)
    assert run("NODE_JOIN", cluster.members().get(), cluster_id=str(cluster.uuid)).state == "SKIPPED"


def test_node_leave_decreases_the_desired_capacity() -> None:
    cluster = make_cluster(size=2)
    assert run("NODE_LEAVE", cluster.members()[0]).state == "SUCCEEDED"
    assert (members(cluster), reload(cluster).desired_capacity, reload(cluster).status) == ([2], 1, "ACTIVE")


def test_node_leave_below_min_size_is_refused() -> None:
    cluster = make_cluster(size=1, min_size=1)
    words = "The target capacity (0) is less than the cluster's min_size (1)."
    assert refusal(run("NODE_LEAVE", cluster.members().get())) == words


def test_node_leave_of_a_node_without_a_cluster_is_skipped() -> None:
    assert run("NODE_LEAVE", make_member(status="ACTIVE")).state == "SKIPPED"
