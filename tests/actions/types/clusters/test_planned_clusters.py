"""Plans of cluster operations that are reviewed, in which actions are skipped, and that are then started."""

import pytest

from actions.models import Action
from actions.operations.skipping import skip_actions
from cluster.models import Cluster, Node, Server
from plans.models import ActionPlan
from plans.operations.base import Operation, RequestOptions
from plans.operations.clusters import create_cluster, scale_out
from tests.builders import make_binding, make_cluster, make_node, make_profile
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db

PLAN_ONLY = RequestOptions(plan_only=True)


def plan_of(operation: Operation) -> ActionPlan:
    return ActionPlan.objects.get(uuid=operation.action_plan)


def start_without(operation: Operation, left_out: Action) -> ActionPlan:
    """Skip one action of a plan, run the plan to its end and return it."""
    skip_actions(plan_of(operation), [left_out.uuid], "alice", "")
    plan_of(operation).launch()
    run_waiting()
    return plan_of(operation)


def test_planned_scale_out_contains_the_creation_of_each_node() -> None:
    cluster = make_cluster(size=1)
    plan = plan_of(scale_out(cluster, count=3, options=PLAN_ONLY))
    parent, *creations = plan.actions.order_by("pk")
    assert (plan.state, parent.action_type) == ("RECOMMENDED", "CLUSTER_SCALE_OUT")
    assert parent.data["creation"]["count"] == len(creations) == 3
    assert [(one.action_type, one.derived_from, one.target) for one in creations] == [
        ("NODE_CREATE", parent, uuid) for uuid in parent.data["creation"]["nodes"]
    ]
    assert Node.objects.count() == 1


def test_planned_scale_out_creates_only_nodes_that_are_not_skipped() -> None:
    make_node()
    cluster = make_cluster(size=1)
    operation = scale_out(cluster, count=3, options=PLAN_ONLY)
    skipped = plan_of(operation).actions.filter(action_type="NODE_CREATE").order_by("pk")[1]
    plan = start_without(operation, skipped)
    assert plan.state == "SUCCEEDED", plan.status_message
    assert Action.objects.get(pk=skipped.pk).state == "SKIPPED"
    assert not Node.objects.filter(uuid=skipped.target).exists()
    current = Cluster.objects.get(pk=cluster.pk)
    assert (current.members().count(), current.desired_capacity, current.status) == (3, 3, "ACTIVE")
    assert Server.objects.present().count() == 2


def test_second_of_two_planned_scalings_fails_during_the_cooldown() -> None:
    make_node()
    cluster = make_cluster()
    spec = {"event": "CLUSTER_SCALE_OUT", "adjustment": {"cooldown": 3600}}
    make_binding(cluster, "senlin.policy.scaling-1.0", spec)
    plans = [plan_of(scale_out(cluster, options=PLAN_ONLY)) for _ in range(2)]
    for plan in plans:
        plan.launch()
        run_waiting()
    assert [ActionPlan.objects.get(pk=plan.pk).state for plan in plans] == ["SUCCEEDED", "FAILED"]
    assert "cooldown is still in progress" in plans[1].actions.get(derived_from=None).status_message
    assert cluster.members().count() == 1


def test_planned_creation_creates_the_nodes_when_the_plan_starts() -> None:
    make_node()
    make_profile("small web")
    operation = create_cluster("web", "small web", desired_capacity=2, options=PLAN_ONLY)
    assert (Cluster.objects.get().status, Node.objects.count()) == ("INIT", 0)
    plan = start_without(operation, plan_of(operation).actions.filter(action_type="NODE_CREATE").order_by("pk")[0])
    assert plan.state == "SUCCEEDED", plan.status_message
    current = Cluster.objects.get()
    assert (current.members().count(), current.desired_capacity, current.status) == (1, 1, "ACTIVE")
