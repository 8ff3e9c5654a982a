"""The timeouts of the actions in a plan that continues another plan."""

import pytest

from actions.graph.proposals import ProposedAction
from cluster.models import Cluster, Stack
from plans.models import ActionPlan
from plans.planning.continuation import continue_plan
from plans.planning.proposals import propose
from tests.builders import make_cluster, make_profile, make_resource, make_stack
from tests.plans.applier.test_commits import counted

pytestmark = pytest.mark.django_db


def failed(*actions: ProposedAction) -> ActionPlan:
    plan = propose(actions)
    plan.actions.update(state="FAILED")
    ActionPlan.objects.filter(pk=plan.pk).update(state="FAILED")
    return ActionPlan.objects.get(pk=plan.pk)


def continued_timeouts(plan: ActionPlan) -> dict[str, int | None]:
    return dict(continue_plan(plan).actions.values_list("action_type", "timeout"))


def on(kind: str, record: object, **options: object) -> ProposedAction:
    return ProposedAction(kind, {"resource_id": str(record.uuid), "resource_name": record.name}, **options)


@pytest.fixture
def cluster() -> Cluster:
    make_profile()
    return make_cluster(timeout=100)


@pytest.mark.parametrize(("timeout", "seconds"), [(100, 100), (0, None)])
def test_continued_cluster_action_has_the_current_timeout_of_the_cluster(timeout: int, seconds: int | None) -> None:
    make_profile()
    cluster = make_cluster(timeout=timeout)
    assert continued_timeouts(failed(on("CLUSTER_CHECK", cluster, timeout=4))) == {"CLUSTER_CHECK": seconds}


def test_continued_stack_action_and_its_planned_actions_have_the_current_timeout_of_the_stack() -> None:
    stack = make_stack(timeout_mins=2)
    origin = on("delete_stack", stack, timeout=60)
    child = on("delete_resource", make_resource(stack), timeout=60, derived_from=origin.uuid)
    assert continued_timeouts(failed(origin, child)) == {"delete_stack": 120, "delete_resource": 120}


def test_continued_stack_update_keeps_the_timeout_that_it_sets(cluster: Cluster) -> None:
    stack = Stack.objects.get(pk=make_stack(timeout_mins=2).pk)
    update = on("update_stack", stack, timeout=300)
    update.input_parameters["timeout_mins"] = 5
    assert continued_timeouts(failed(update)) == {"update_stack": 300}


def test_other_continued_action_keeps_its_timeout(cluster: Cluster) -> None:
    assert continued_timeouts(failed(ProposedAction("nop", {"message": "a"}, timeout=4))) == {"nop": 4}


def test_continued_action_on_a_deleted_cluster_keeps_its_timeout(cluster: Cluster) -> None:
    plan = failed(on("CLUSTER_CHECK", cluster, timeout=4))
    Cluster.objects.filter(pk=cluster.pk).delete()
    assert continued_timeouts(plan) == {"CLUSTER_CHECK": 4}


def test_statement_count_does_not_depend_on_the_number_of_clusters(cluster: Cluster) -> None:
    costs = []
    for size in (2, 20):
        clusters = [make_cluster(f"cluster-{size}-{number}", timeout=7) for number in range(size)]
        plan = failed(*(on("CLUSTER_CHECK", one, timeout=4) for one in clusters))
        with counted() as statements:
            continue_plan(plan)
        costs.append(len(statements))
    assert costs[0] == costs[1]
