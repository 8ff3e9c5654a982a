"""Preflights of operations on clusters and nodes, compared with the outcomes of the operations."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.types.locking import take_lock
from cluster.models import Cluster, Node, Server
from plans.models import ActionPlan
from plans.operations import clusters
from plans.operations.base import RequestOptions
from plans.operations.clusters import check_cluster, delete_cluster, recover_cluster, update_cluster
from plans.planning.proposals import propose
from plans.preflight import Preflight, preflight
from tests.actions.types.clusters.builders import create_cluster
from tests.api import Caller
from tests.builders import make_cluster, make_flavor, make_member, make_node, make_plan, make_profile
from tests.plans.applier.test_commits import counted
from tests.plans.inline import run_waiting
from watcher_site.configuration.policies import ADMIN, EVENT_DETAILS, SYSTEM_READER

pytestmark = pytest.mark.django_db
PLAN_ONLY = RequestOptions(plan_only=True)


@pytest.fixture(autouse=True)
def profile() -> None:
    make_flavor("small", vcpus=1, memory=1024, disk=1)
    make_flavor("large", vcpus=2, memory=1024, disk=1)
    make_flavor("huge", vcpus=999, memory=1024, disk=1)
    make_profile("web")


def capacity(servers: int) -> None:
    make_node("compute1", vcpus=servers, memory=1024 * servers, disk=servers)


def unplanned(kind: str, record: Cluster | Node, **inputs: Any) -> ActionPlan:
    return propose([ProposedAction(kind, {"resource_id": str(record.uuid), "resource_name": record.name, **inputs})])


def planned(operation: Any) -> ActionPlan:
    return ActionPlan.objects.get(uuid=operation.action_plan)


def outcomes(found: Preflight) -> list[tuple[str, str]]:
    return sorted((prospect.action.action_type, prospect.outcome) for prospect in found.prospects)


def run_and_read_outcomes(plan: ActionPlan) -> list[tuple[str, str]]:
    """Run a plan, and return the outcomes of its present actions."""
    keys = list(plan.actions.values_list("pk", flat=True))
    ActionPlan.objects.get(pk=plan.pk).launch()
    run_waiting()
    return sorted(Action.objects.filter(pk__in=keys).values_list("action_type", "state"))


def compare_preflight_and_run(plan: ActionPlan) -> list[tuple[str, str]]:
    before = rows()
    foreseen = outcomes(preflight(plan))
    assert rows() == before
    assert run_and_read_outcomes(plan) == foreseen
    return foreseen


def rows() -> list[Any]:
    """Return the rows that a preflight must not change."""
    return [list(model.objects.order_by("pk").values()) for model in (Cluster, Node, Server, Action)]


def test_scale_out_within_the_capacity_succeeds() -> None:
    capacity(3)
    cluster = make_cluster(size=1)
    plan = planned(clusters.scale_out(cluster, count=2, options=PLAN_ONLY))
    assert compare_preflight_and_run(plan) == [
        ("CLUSTER_SCALE_OUT", "SUCCEEDED"),
        *[("NODE_CREATE", "SUCCEEDED")] * 2,
    ]


def test_planned_scale_out_beyond_the_capacity_fails_with_the_reason() -> None:
    capacity(1)
    plan = planned(clusters.scale_out(make_cluster(size=1), count=2, options=PLAN_ONLY))
    [failed] = [one for one in preflight(plan).prospects if one.action.action_type == "CLUSTER_SCALE_OUT"]
    foretold = str(failed.foresight.message)
    assert foretold.startswith("Action failed in completion: 1 of the 2 actions that it derived failed: NODE_CREATE_")
    assert "No valid host was found." in foretold
    assert compare_preflight_and_run(plan) == [
        ("CLUSTER_SCALE_OUT", "FAILED"),
        ("NODE_CREATE", "FAILED"),
        ("NODE_CREATE", "SUCCEEDED"),
    ]
    assert plan.actions.get(derived_from=None).status_message == foretold


def test_unplanned_scale_out_beyond_the_capacity_fails_with_the_reason() -> None:
    capacity(1)
    plan = unplanned("CLUSTER_SCALE_OUT", make_cluster(size=1), count=2)
    [failed] = preflight(plan).prospects
    assert "1 of the 2 actions that it derived failed: NODE_CREATE_" in str(failed.foresight.message)
    assert compare_preflight_and_run(plan) == [("CLUSTER_SCALE_OUT", "FAILED")]


def test_scale_out_beyond_a_size_bound_fails() -> None:
    capacity(3)
    cluster = make_cluster(size=1, max_size=2)
    plan = planned(clusters.scale_out(cluster, count=1, options=PLAN_ONLY))
    make_member("late", status="ACTIVE", cluster=cluster, index=9)
    assert ("CLUSTER_SCALE_OUT", "FAILED") in compare_preflight_and_run(plan)


def test_scale_in_succeeds() -> None:
    capacity(2)
    cluster = create_cluster(2)
    shrink = planned(clusters.scale_in(cluster, count=1, options=PLAN_ONLY))
    assert compare_preflight_and_run(shrink) == [("CLUSTER_SCALE_IN", "SUCCEEDED"), ("NODE_DELETE", "SUCCEEDED")]


@pytest.mark.parametrize("kind", ["CLUSTER_CHECK", "CLUSTER_RECOVER", "CLUSTER_DELETE", "CLUSTER_CREATE"])
def test_operations_without_inputs_succeed(kind: str) -> None:
    capacity(4)
    cluster = create_cluster(2)
    Server.objects.filter(name__startswith="a cluster").update(state="error")
    assert compare_preflight_and_run(unplanned(kind, cluster)) == [(kind, "SUCCEEDED")]


def test_planned_deletion_succeeds() -> None:
    capacity(2)
    plan = planned(delete_cluster(create_cluster(2), force=True, options=PLAN_ONLY))
    assert compare_preflight_and_run(plan) == [("CLUSTER_DELETE", "SUCCEEDED"), *[("NODE_DELETE", "SUCCEEDED")] * 2]


@pytest.mark.parametrize("operation", ["REBOOT", "REBUILD", "RECREATE"])
def test_planned_recovery_succeeds(operation: str) -> None:
    capacity(2)
    cluster = create_cluster(2)
    cluster.members().update(status="ERROR")
    plan = planned(recover_cluster(cluster, operation=operation, options=PLAN_ONLY))
    assert compare_preflight_and_run(plan) == [
        ("CLUSTER_RECOVER", "SUCCEEDED"),
        *[("NODE_RECOVER", "SUCCEEDED")] * 2,
    ]


@pytest.mark.parametrize(("flavor", "state"), [("large", "SUCCEEDED"), ("huge", "FAILED")])
def test_profile_update_is_foreseen_by_the_capacity_for_the_new_flavor(flavor: str, state: str) -> None:
    capacity(4)
    cluster = create_cluster(2)
    profile = make_profile("other", flavor=flavor)
    plan = planned(update_cluster(cluster, {"profile": str(profile.uuid)}, options=PLAN_ONLY))
    assert compare_preflight_and_run(plan) == [("CLUSTER_UPDATE", state), *[("NODE_UPDATE", state)] * 2]


def test_operation_on_a_deleted_cluster_is_skipped() -> None:
    cluster = make_cluster()
    plan = unplanned("CLUSTER_CHECK", cluster)
    Cluster.objects.filter(pk=cluster.pk).soft_delete()
    assert compare_preflight_and_run(plan) == [("CLUSTER_CHECK", "SKIPPED")]


@pytest.mark.parametrize(
    ("kind", "status", "state"),
    [
        ("NODE_CREATE", "INIT", "SUCCEEDED"),
        ("NODE_CHECK", "INIT", "SKIPPED"),
        ("NODE_CHECK", "ERROR", "SUCCEEDED"),
        ("NODE_DELETE", "ACTIVE", "SUCCEEDED"),
        ("NODE_RECOVER", "ERROR", "SUCCEEDED"),
        ("NODE_UPDATE", "ACTIVE", "SUCCEEDED"),
        ("NODE_LEAVE", "ACTIVE", "SKIPPED"),
    ],
)
def test_actions_on_a_node_without_a_cluster_are_foreseen(kind: str, status: str, state: str) -> None:
    capacity(1)
    assert compare_preflight_and_run(unplanned(kind, make_member(status=status))) == [(kind, state)]


def test_node_creation_without_capacity_fails_with_the_reason() -> None:
    capacity(0)
    plan = unplanned("NODE_CREATE", make_member())
    [failed] = preflight(plan).prospects
    assert failed.foresight.message == (
        "Action failed in execute: No valid host was found. There are not enough hosts available."
    )
    assert compare_preflight_and_run(plan) == [("NODE_CREATE", "FAILED")]


def test_deletion_of_a_member_required_by_min_size_fails() -> None:
    cluster = make_cluster(size=1, min_size=1)
    assert compare_preflight_and_run(unplanned("NODE_DELETE", cluster.members()[0])) == [("NODE_DELETE", "FAILED")]


def test_node_cannot_join_a_cluster_at_its_max_size() -> None:
    cluster = make_cluster(size=1, max_size=1)
    plan = unplanned("NODE_JOIN", make_member(status="ACTIVE"), cluster_id=str(cluster.uuid))
    assert compare_preflight_and_run(plan) == [("NODE_JOIN", "FAILED")]


@pytest.mark.parametrize("kind", ["CLUSTER_CHECK", "NODE_CHECK"])
def test_action_waiting_for_a_lock_is_unknown_and_names_the_lock_holder(kind: str) -> None:
    cluster = make_cluster(size=1)
    holder = make_plan({"holder": []}).actions.get()
    take_lock(cluster, str(holder.uuid))
    [found] = preflight(unplanned(kind, cluster if kind == "CLUSTER_CHECK" else cluster.members()[0])).prospects
    words = f"Failed in locking cluster {cluster.uuid}: action {holder.uuid} is at work on it"
    assert (found.outcome, found.foresight.message) == ("UNKNOWN", f"It would wait: {words}")


@pytest.mark.parametrize("rule", [ADMIN, SYSTEM_READER])
def test_failure_reason_of_a_derived_action_is_hidden_without_the_event_details_permission(
    reader: User, client: Client, settings: Settings, rule: str
) -> None:
    settings.POLICIES = {EVENT_DETAILS: rule}
    capacity(5)
    plan = planned(check_cluster(make_cluster("web", size=2), options=PLAN_ONLY))
    plan.launch()
    ActionPlan.objects.filter(pk=plan.pk).update(state="ONGOING")
    failed = plan.actions.exclude(derived_from=None).order_by("pk")[0]
    Action.objects.filter(pk=failed.pk).update(state="FAILED", status_message="Action failed in execute: a secret")
    client.force_login(reader)
    page = client.get(reverse("plans:preflight", args=[plan.uuid]))
    answer = Caller(reader, "1.13").get(f"/action_plans/{plan.uuid}/preflight")
    for found in (page.content.decode(), answer.content.decode()):
        assert "Action failed in execute" in found
        assert ("a secret" in found) == (rule != ADMIN)


def test_planned_actions_of_an_action_waiting_for_a_lock_are_unknown() -> None:
    capacity(3)
    cluster = make_cluster(size=1)
    plan = planned(clusters.scale_out(cluster, count=1, options=PLAN_ONLY))
    take_lock(cluster, str(make_plan({"holder": []}).actions.get().uuid))
    assert outcomes(preflight(plan)) == [("CLUSTER_SCALE_OUT", "UNKNOWN"), ("NODE_CREATE", "UNKNOWN")]


def test_second_operation_on_the_same_cluster_is_unknown() -> None:
    capacity(9)
    cluster = make_cluster(size=1)
    named = {"resource_id": str(cluster.uuid), "resource_name": cluster.name}
    plan = propose([ProposedAction("CLUSTER_SCALE_OUT", named), ProposedAction("CLUSTER_SCALE_OUT", named)])
    first, second = preflight(plan).prospects
    assert (first.outcome, second.outcome) == ("SUCCEEDED", "UNKNOWN")
    assert second.foresight.message == f"Another action of the plan changes cluster {cluster.uuid} before."


def test_statement_count_does_not_depend_on_the_size_of_the_cluster() -> None:
    capacity(100)
    costs = []
    for size in (2, 20):
        cluster = make_cluster(f"cluster-{size}", size=1)
        plans = [
            planned(clusters.scale_out(cluster, count=size, options=PLAN_ONLY)),
            unplanned("CLUSTER_SCALE_OUT", cluster, count=size),
            unplanned("CLUSTER_CHECK", make_cluster(f"checked-{size}", size=size)),
        ]
        with counted() as statements:
            for plan in plans:
                preflight(plan)
        costs.append(len(statements))
    assert costs[0] == costs[1]
