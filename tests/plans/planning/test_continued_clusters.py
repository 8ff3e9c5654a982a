"""A continued plan does the rest of a change of a cluster, and repeats nothing."""

import pytest
from pytest_django import Settings

from actions.models import Action
from cluster.models import Cluster, Node, Server
from plans.models import ActionPlan
from plans.operations.base import RequestOptions
from plans.operations.clusters import create_cluster, scale_out
from plans.planning.continuation import continue_plan
from tests.actions.types.clusters.builders import again, run
from tests.builders import make_cluster, make_node, make_profile
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db


def add_host_for(number: int) -> None:
    """Add a node with capacity for this number of servers."""
    make_node(f"compute{number}", vcpus=number)


def continued(plan: ActionPlan) -> ActionPlan:
    """Run the continuation of a plan that failed, and return it."""
    assert ActionPlan.objects.get(pk=plan.pk).state == "FAILED"
    follower = continue_plan(plan)
    follower.launch()
    run_waiting()
    return ActionPlan.objects.get(pk=follower.pk)


def size_of(cluster: Cluster) -> tuple[int, int, int, str]:
    """Return how many members and servers there are, how many are wanted, and what the cluster's status says."""
    current = again(cluster)
    servers = Server.objects.present().count()
    return current.members().count(), servers, current.desired_capacity, current.status


@pytest.mark.parametrize("looked_at", [False, True])
def test_a_cluster_gets_the_nodes_that_are_missing_and_no_more(looked_at: bool) -> None:
    add_host_for(2)
    make_profile("small web")
    operation = create_cluster("web", "small web", desired_capacity=3, options=RequestOptions(plan_only=looked_at))
    plan = ActionPlan.objects.get(uuid=operation.action_plan)
    if looked_at:
        plan.launch()
    run_waiting()
    cluster = Cluster.objects.get()
    assert size_of(cluster)[:3] == (3, 2, 3)
    add_host_for(1)
    assert continued(plan).state == "SUCCEEDED"
    assert size_of(cluster) == (3, 3, 3, "ACTIVE")


@pytest.mark.parametrize("looked_at", [False, True])
def test_a_cluster_that_grew_in_part_grows_by_the_rest(looked_at: bool) -> None:
    add_host_for(1)
    cluster = make_cluster()
    operation = scale_out(cluster, count=2, options=RequestOptions(plan_only=looked_at))
    plan = ActionPlan.objects.get(uuid=operation.action_plan)
    if looked_at:
        plan.launch()
    run_waiting()
    assert size_of(cluster)[:3] == (2, 1, 2)
    add_host_for(2)
    assert continued(plan).state == "SUCCEEDED"
    assert size_of(cluster) == (2, 2, 2, "ACTIVE")


def test_a_cluster_that_was_resized_in_part_gets_the_rest() -> None:
    add_host_for(1)
    cluster = make_cluster()
    plan = run("CLUSTER_RESIZE", cluster, adjustment_type="CHANGE_IN_CAPACITY", number=2)
    add_host_for(2)
    assert continued(plan).state == "SUCCEEDED"
    assert size_of(cluster) == (2, 2, 2, "ACTIVE")


def test_a_cluster_that_shrank_in_part_loses_the_rest_and_no_others(settings: Settings) -> None:
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
def test_the_outputs_name_the_nodes_that_were_created_alone(kind: str) -> None:
    add_host_for(1)
    cluster = make_cluster(status="INIT", desired_capacity=2)
    run(kind, cluster, **({} if kind == "CLUSTER_CREATE" else {"count": 2}))
    created = cluster.members().get(status="ACTIVE")
    assert Action.objects.get(derived_from=None).outputs["nodes_added"] == [str(created.uuid)]
