"""Continuations of operations on clusters that were completed in part."""

import pytest
from pytest_django import Settings

from actions.models import Action
from cluster.models import Cluster, Node, Server
from plans.models import ActionPlan
from plans.operations.base import RequestOptions
from plans.operations.clusters import create_cluster, scale_out
from plans.planning.continuation import continue_plan
from tests.actions.types.clusters.builders import reload, run
from tests.builders import make_cluster, make_node, make_profile
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db


def add_host_for(number: int) -> None:
    """Add a node with capacity for this number of servers."""
    make_node(f"compute{number}", vcpus=number)


def continued(plan: ActionPlan) -> ActionPlan:
    """Run the continuation of a failed plan, and return it."""
    assert ActionPlan.objects.get(pk=plan.pk).state == "FAILED"
    follower = continue_plan(plan)
    follower.launch()
    run_waiting()
    return ActionPlan.objects.get(pk=follower.pk)


def size_of(cluster: Cluster) -> tuple[int, int, int, str]:
    """Return the numbers of members and servers, the desired capacity, and the status of a cluster."""
    current = reload(cluster)
    servers = Server.objects.present().count()
    return current.members().count(), servers, current.desired_capacity, current.status


@pytest.mark.parametrize("plan_only", [False, True])
def test_continued_creation_adds_only_the_missing_nodes(plan_only: bool) -> None:
    add_host_for(2)
    make_profile("small web")
    operation = create_cluster("web", "small web", desired_capacity=3, options=RequestOptions(plan_only=plan_only))
    plan = ActionPlan.objects.get(uuid=operation.action_plan)
    if plan_only:
        plan.launch()
    run_waiting()
    cluster = Cluster.objects.get()
    assert size_of(cluster)[:3] == (3, 2, 3)
    add_host_for(1)
    assert continued(plan).state == "SUCCEEDED"
    assert size_of(cluster) == (3, 3, 3, "ACTIVE")


@pytest.mark.parametrize("plan_only", [False, True])
def test_continued_scale_out_adds_only_the_missing_nodes(plan_only: bool) -> None:
    add_host_for(1)
    cluster = make_cluster()
    operation = scale_out(cluster, count=2, options=RequestOptions(plan_only=plan_only))
    plan = ActionPlan.objects.get(uuid=operation.action_plan)
    if plan_only:
        plan.launch()
    run_waiting()
    assert size_of(cluster)[:3] == (2, 1, 2)
    add_host_for(2)
    assert continued(plan).state == "SUCCEEDED"
    assert size_of(cluster) == (2, 2, 2, "ACTIVE")


def test_continued_resize_adds_only_the_missing_nodes() -> None:
    add_host_for(1)
    cluster = make_cluster()
    plan = run("CLUSTER_RESIZE", cluster, adjustment_type="CHANGE_IN_CAPACITY", number=2)
    add_host_for(2)
    assert continued(plan).state == "SUCCEEDED"
    assert size_of(cluster) == (2, 2, 2, "ACTIVE")


def test_continued_scale_in_removes_only_the_remaining_chosen_nodes(settings: Settings) -> None:
    add_host_for(4)
    cluster = make_cluster(status="INIT", desired_capacity=4)
    run("CLUSTER_CREATE", cluster)
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1
    plan = run("CLUSTER_SCALE_IN", cluster, count=2)
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 0
    chosen = set(Action.objects.filter(action_type="NODE_DELETE").values_list("target", flat=True))
    assert run("NODE_DELETE", Node.objects.get(uuid=min(chosen))).state == "SUCCEEDED"
    assert continued(plan).state == "SUCCEEDED"
    assert not chosen.intersection(map(str, cluster.members().values_list("uuid", flat=True)))
    assert size_of(cluster) == (2, 2, 2, "ACTIVE")


@pytest.mark.parametrize("kind", ["CLUSTER_CREATE", "CLUSTER_SCALE_OUT"])
def test_outputs_name_only_the_created_nodes(kind: str) -> None:
    add_host_for(1)
    cluster = make_cluster(status="INIT", desired_capacity=2)
    run(kind, cluster, **({} if kind == "CLUSTER_CREATE" else {"count": 2}))
    created = cluster.members().get(status="ACTIVE")
    assert Action.objects.get(derived_from=None).outputs["nodes_added"] == [str(created.uuid)]
