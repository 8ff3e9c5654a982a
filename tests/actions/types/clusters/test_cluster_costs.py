"""Statements and commits per node that leaves or joins a cluster do not depend on the number of nodes."""

from collections.abc import Callable

import pytest

from actions.engine import execution
from actions.models import Action
from cluster.models import Cluster
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from tests.actions.types.clusters.builders import proposed
from tests.builders import make_cluster, make_flavor, make_member, make_node, make_profile
from tests.plans.applier.test_commits import counted, counted_commits
from tests.plans.inline import claim, run_waiting
from watcher_site.models import Service


def cost(make: Callable[[], ActionPlan]) -> int:
    """Return the number of statements that an action takes until it waits for its derived actions."""
    plan = make()
    applier = Service.register(Service.APPLIER, "here")
    claim(plan, applier)
    lease, action = PlanLease.of(plan, applier), plan.actions.get()
    lease.hold(has_begun=False)
    with counted() as statements:
        execution.execute(action, lease)
    assert Action.objects.get(pk=action.pk).has_derived
    return len([sql for sql in statements if "SAVEPOINT" not in sql])


def named(cluster: Cluster) -> list[str]:
    return [str(uuid) for uuid in cluster.members().values_list("uuid", flat=True)]


def add(count: int) -> ActionPlan:
    alone = [str(make_member(f"alone-{number}", status="ACTIVE").uuid) for number in range(count)]
    return proposed("CLUSTER_ADD_NODES", make_cluster(), nodes=alone)


def remove(count: int) -> ActionPlan:
    cluster = make_cluster(size=count)
    return proposed("CLUSTER_DEL_NODES", cluster, nodes=named(cluster))


@pytest.mark.django_db
@pytest.mark.postgresql  # Django sends SQLite at most 999 values a statement, and so more statements.
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda count: proposed("CLUSTER_SCALE_IN", make_cluster(size=count), count=count), id="scale-in"),
        pytest.param(lambda count: proposed("CLUSTER_DELETE", make_cluster(size=count)), id="delete"),
        pytest.param(add, id="add"),
        pytest.param(remove, id="remove"),
    ],
)
def test_statement_count_of_the_decision_does_not_depend_on_the_number_of_nodes(
    make: Callable[[int], ActionPlan],
) -> None:
    make_flavor("small")
    make_profile("web")
    cost(lambda: make(3))  # Fills the caches of the process.
    assert cost(lambda: make(10)) == cost(lambda: make(100))


@pytest.mark.django_db
def test_statements_per_removed_node_do_not_grow_with_the_number_of_nodes() -> None:
    costs = {}
    make_flavor("small")
    make_profile("web")
    for count in (5, 10, 40):
        proposed("CLUSTER_SCALE_IN", make_cluster(size=count), count=count)
        with counted() as statements:
            run_waiting()
        costs[count] = len(statements)
    assert (costs[40] - costs[10]) / 30 <= (costs[10] - costs[5]) / 5 + 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("kind", "commits"), [("NODE_DELETE", 4), ("NODE_LEAVE", 3), ("NODE_JOIN", 3)])
def test_derived_node_action_takes_a_fixed_number_of_commits_and_no_locks(
    monkeypatch: pytest.MonkeyPatch, kind: str, commits: int
) -> None:
    """Two commits of the action, and the commits of the changes of the node's row."""
    make_node()
    cluster = make_cluster(size=1)
    node = make_member("alone", status="ACTIVE") if kind == "NODE_JOIN" else cluster.members().get()
    inputs = {"cluster_id": str(cluster.uuid)} if kind == "NODE_JOIN" else {}
    plan = proposed(kind, node, **inputs)
    plan.actions.update(derived_from=proposed("CLUSTER_CHECK", cluster).actions.get())
    applier = Service.register(Service.APPLIER, "here")
    claim(plan, applier)
    lease, action = PlanLease.of(plan, applier), plan.actions.get()
    lease.hold(has_begun=False)
    with counted_commits(monkeypatch) as written:
        assert execution.execute(action, lease)
    assert len(written) == commits
    assert not cluster.locks.exists()
