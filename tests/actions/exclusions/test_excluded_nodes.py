"""Exclusions of single nodes, and their effect on actions on the clusters of these nodes."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from actions.models import Action
from actions.models.exclusions import ExclusionRevision
from cluster.models import Cluster
from plans.models import ActionPlan
from plans.operations import clusters as cluster_operations
from plans.operations.base import RequestOptions
from plans.planning.proposals import propose
from tests.actions.exclusions.builders import make_exclusion
from tests.actions.exclusions.test_exclusions import nop, states
from tests.api import Caller, fault
from tests.builders import make_binding, make_cluster, make_flavor, make_member, make_node, make_server
from tests.plans.inline import run_waiting
from watcher_site.refusals import Conflict

pytestmark = pytest.mark.django_db
AT_ONCE, PLAN_ONLY = RequestOptions(), RequestOptions(plan_only=True)
OLDEST_FIRST = {"criteria": "OLDEST_FIRST"}


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster of three nodes n0 to n2 on the servers s0 to s2."""
    host = make_node("compute1", vcpus=100, memory=400_000, disk=10_000)
    make_flavor("small")
    cluster = make_cluster("web", desired_capacity=3)
    for index in range(3):
        make_member(f"n{index}", server=make_server(f"s{index}", host), cluster=cluster, index=index, status="ACTIVE")
    return cluster


def exclude(*servers: str) -> None:
    make_exclusion("keep", action_types=["NODE_DELETE", "NODE_LEAVE"], targets={"servers": list(servers)})


def end(options: RequestOptions) -> None:
    """Run the plan to its end, after starting it if it was only planned."""
    if options.plan_only:
        ActionPlan.objects.get().launch()
    run_waiting()


def look(cluster: Cluster) -> tuple[list[str], int, str, str]:
    current = Cluster.objects.get(pk=cluster.pk)
    names = list(current.members().order_by("name").values_list("name", flat=True))
    return names, current.desired_capacity, current.status, current.status_reason


@pytest.mark.parametrize("options", [AT_ONCE, PLAN_ONLY])
@pytest.mark.parametrize("has_policy", [True, False])
def test_scale_in_removes_only_nodes_that_are_not_excluded(
    cluster: Cluster, options: RequestOptions, has_policy: bool
) -> None:
    if has_policy:
        make_binding(cluster, "senlin.policy.deletion-1.1", OLDEST_FIRST)
    exclude("s0", "s1")
    cluster_operations.scale_in(cluster, count=1, options=options)
    end(options)
    reason = "CLUSTER_SCALE_IN: number of active nodes is 2, as desired_capacity (2) says"
    assert look(cluster) == (["n0", "n1"], 2, "ACTIVE", reason)


@pytest.mark.parametrize("options", [AT_ONCE, PLAN_ONLY])
def test_scale_in_removes_as_many_nodes_as_exclusions_allow(cluster: Cluster, options: RequestOptions) -> None:
    exclude("s0", "s2")
    cluster_operations.scale_in(cluster, count=2, options=options)
    end(options)
    assert look(cluster)[:3] == (["n0", "n2"], 2, "ACTIVE")


@pytest.mark.parametrize("options", [AT_ONCE, PLAN_ONLY])
@pytest.mark.parametrize("has_policy", [True, False])
def test_scale_in_is_refused_if_all_nodes_are_excluded(
    cluster: Cluster, options: RequestOptions, has_policy: bool
) -> None:
    if has_policy:
        make_binding(cluster, "senlin.policy.deletion-1.1", OLDEST_FIRST)
    exclude("s0", "s1", "s2")
    with pytest.raises(Conflict, match=f"exclusions keep NODE_DELETE from all members of cluster {cluster.uuid}"):
        cluster_operations.scale_in(cluster, count=1, options=options)


def test_removing_an_excluded_node_is_refused_and_creates_no_plan(cluster: Cluster, cloud_admin: User) -> None:
    exclude("s1")
    api = Caller(cloud_admin, "1.13")
    body = {"del_nodes": {"nodes": [str(cluster.members().get(name="n1").uuid)]}}
    answer = api.post(f"/clusters/{cluster.uuid}/actions", body)
    assert (answer.status_code, "NODE_LEAVE is excluded by 'keep'" in fault(answer)) == (409, True)
    assert not ActionPlan.objects.exists()


@pytest.mark.parametrize("operation", ["check", "recover", "delete"])
def test_operation_is_refused_if_each_derived_action_is_excluded(cluster: Cluster, operation: str) -> None:
    make_exclusion("keep", action_types=["NODE_CHECK", "NODE_RECOVER", "NODE_DELETE"])
    ask = {
        "check": lambda: cluster_operations.check_cluster(cluster),
        "recover": lambda: cluster_operations.recover_cluster(cluster, check=True),
        "delete": lambda: cluster_operations.delete_cluster(cluster, force=True),
    }
    with pytest.raises(Conflict, match="each action that it derives is excluded"):
        ask[operation]()


@pytest.mark.parametrize("options", [AT_ONCE, PLAN_ONLY])
def test_excluded_node_stays_and_counts_for_the_desired_capacity(cluster: Cluster, options: RequestOptions) -> None:
    exclude("s1")
    uuids = [str(uuid) for uuid in cluster.members().filter(name__in=["n1", "n2"]).values_list("uuid", flat=True)]
    cluster_operations.del_nodes(cluster, uuids, options=options)
    end(options)
    reason = "CLUSTER_DEL_NODES: number of active nodes is 2, as desired_capacity (2) says"
    assert look(cluster) == (["n0", "n1"], 2, "ACTIVE", reason)


def test_node_excluded_during_a_scale_in_stays_and_counts(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    excluded = "actions.types.clusters.clusters.ClusterAction.find_excluded"
    monkeypatch.setattr(excluded, lambda *_: set())
    exclude("s0", "s1", "s2")
    cluster_operations.scale_in(cluster, count=1, options=PLAN_ONLY)
    Action.objects.filter(derived_from__isnull=False).update(state="PENDING", exclusion=None)
    end(PLAN_ONLY)
    assert look(cluster)[:3] == (["n0", "n1", "n2"], 3, "ACTIVE")


@pytest.mark.parametrize("options", [AT_ONCE, PLAN_ONLY])
def test_nodes_whose_creation_is_excluded_do_not_count(cluster: Cluster, options: RequestOptions) -> None:
    make_exclusion("keep", action_types=["NODE_CREATE"], targets={"clusters": ["web"]})
    cluster_operations.scale_out(cluster, count=2, options=options)
    end(options)
    assert look(cluster)[:3] == (["n0", "n1", "n2"], 3, "ACTIVE")


def test_node_whose_join_is_excluded_does_not_count(cluster: Cluster) -> None:
    for name in ("a", "b"):
        make_member(name, server=make_server(name, make_node(f"on-{name}")), status="ACTIVE", profile=cluster.profile)
    make_exclusion("keep", action_types=["NODE_JOIN"], targets={"servers": ["a"]})
    uuids = [str(node.uuid) for node in type(cluster.members().first()).objects.filter(name__in=["a", "b"])]
    cluster_operations.add_nodes(cluster, uuids)
    run_waiting()
    assert look(cluster)[:3] == (["b", "n0", "n1", "n2"], 4, "ACTIVE")


def test_expiring_rule_is_applied_when_the_action_starts_and_not_at_planning() -> None:
    later = timezone.now() + timedelta(hours=1)
    rule = make_exclusion("freeze", action_types=["nop"], expires_at=later.isoformat())
    plan, other = propose([nop("a")]), propose([nop("a")])
    assert states(plan) == {"a": "PENDING"}
    plan.launch()
    run_waiting()
    assert states(plan) == {"a": "SKIPPED"}
    type(rule).objects.update(expires_at=timezone.now())
    ExclusionRevision.renew()
    other.launch()
    run_waiting()
    assert states(other) == {"a": "SUCCEEDED"}
