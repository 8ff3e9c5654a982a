"""Continuations of failed operations on clusters, which do not repeat completed steps."""

import pytest

from actions.types.base import ActionFailed
from actions.types.clusters.cluster_scale_in import ClusterScaleIn
from cluster.models import Cluster, Node, Server
from plans.models import ActionPlan
from plans.planning.continuation import continue_plan
from tests.actions.types.clusters.builders import create_cluster, reload, run, running_servers, statuses
from tests.builders import make_cluster, make_flavor, make_node, make_policy, make_profile
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def profile() -> None:
    make_flavor("small", vcpus=1, memory=1024, disk=1)
    make_profile("web")


def add_host(name: str, servers: int) -> None:
    make_node(name, vcpus=servers, memory=1024 * servers, disk=servers)


def continued(plan: ActionPlan) -> ActionPlan:
    successor = continue_plan(plan)
    successor.launch()
    run_waiting()
    return ActionPlan.objects.get(pk=successor.pk)


def summary_of(cluster: Cluster) -> tuple[str, int, list[str]]:
    found = reload(cluster)
    return found.status, found.desired_capacity, statuses(found)


def test_continuation_of_a_failed_creation_creates_the_missing_servers() -> None:
    add_host("small", 1)
    cluster = make_cluster(status="INIT", desired_capacity=3)
    plan = run("CLUSTER_CREATE", cluster)
    assert (plan.state, sorted(statuses(cluster))) == ("FAILED", ["ACTIVE", "ERROR", "ERROR"])
    add_host("large", 10)
    assert continued(plan).state == "SUCCEEDED"
    assert summary_of(cluster) == ("ACTIVE", 3, ["ACTIVE"] * 3)
    assert running_servers() == Server.objects.present().count() == 3


def test_continuation_of_a_scale_out_without_capacity_does_not_grow_again() -> None:
    cluster = make_cluster(size=2)
    plan = run("CLUSTER_SCALE_OUT", cluster, count=2)
    again_failed = continued(plan)
    assert (again_failed.state, reload(cluster).desired_capacity, cluster.members().count()) == ("FAILED", 4, 4)
    add_host("large", 10)
    assert continued(again_failed).state == "SUCCEEDED"
    assert summary_of(cluster) == ("ACTIVE", 4, ["ACTIVE"] * 4)


def test_continuation_of_a_scale_in_that_failed_at_its_end_does_not_shrink_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add_host("large", 10)
    cluster = create_cluster(4)

    def break_down(*_: object) -> None:
        raise ActionFailed("It broke.")

    with monkeypatch.context() as patched:
        patched.setattr(ClusterScaleIn, "complete", break_down)
        plan = run("CLUSTER_SCALE_IN", cluster, count=2)
    assert (plan.state, cluster.members().count()) == ("FAILED", 2)
    assert continued(plan).state == "SUCCEEDED"
    assert summary_of(cluster) == ("ACTIVE", 2, ["ACTIVE"] * 2)


def test_operation_refused_before_it_began_is_decided_again() -> None:
    add_host("large", 10)
    cluster = make_cluster(size=2, max_size=2)
    plan = run("CLUSTER_SCALE_OUT", cluster)
    assert plan.state == "FAILED"
    Cluster.objects.filter(pk=cluster.pk).update(max_size=3)
    assert continued(plan).state == "SUCCEEDED"
    assert (reload(cluster).desired_capacity, Node.objects.count()) == (3, 3)


def test_policy_applied_before_the_failure_is_not_applied_again() -> None:
    spec = {"event": "CLUSTER_SCALE_OUT", "adjustment": {"number": 2, "cooldown": 3600}}
    cluster = make_cluster(size=1)
    policy = make_policy(type="senlin.policy.scaling-1.0", spec=spec)
    cluster.policy_bindings.create(policy=policy, priority=100)
    plan = run("CLUSTER_SCALE_OUT", cluster)
    assert (plan.state, cluster.members().count()) == ("FAILED", 3)
    add_host("large", 10)
    assert continued(plan).state == "SUCCEEDED"
    assert summary_of(cluster) == ("ACTIVE", 3, ["ACTIVE"] * 3)
