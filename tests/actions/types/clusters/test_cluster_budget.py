"""Commits and statements per created node do not depend on the number of nodes."""

import pytest

from cluster.models import Cluster
from tests.actions.types.clusters.test_cluster_growth import run
from tests.builders import make_cluster, make_node
from tests.plans.applier.test_commits import counted, counted_commits

pytestmark = pytest.mark.django_db(transaction=True)
# Of the action engine, the embedded cloud and the node, at their start and at their end.
COMMITS, STATEMENTS = 6, 18


def grow(cluster: Cluster, count: int) -> None:
    assert run("CLUSTER_SCALE_OUT", cluster, count=count).state == "SUCCEEDED"


def test_commits_per_created_node_are_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    make_node(vcpus=1000, memory=1_000_000, disk=10_000)
    costs = []
    for count in (10, 10, 30):
        cluster = make_cluster(f"of {count} {len(costs)}")
        with counted_commits(monkeypatch) as commits:
            grow(cluster, count)
        costs.append(len(commits))
    assert costs[2] - costs[1] == 20 * COMMITS


@pytest.mark.postgresql  # Django sends SQLite at most 999 values a statement, and so more statements.
def test_statements_per_created_node_do_not_grow_with_the_number_of_nodes() -> None:
    make_node(vcpus=1000, memory=1_000_000, disk=10_000)
    costs = []
    for count in (10, 10, 30, 50):
        cluster = make_cluster(f"of {count} {len(costs)}")
        with counted() as statements:
            grow(cluster, count)
        costs.append(len([sql for sql in statements if "SAVEPOINT" not in sql]))
    # Including the pages of derived actions and the checks of the lease, of which a slow machine makes more.
    assert costs[2] - costs[1] <= 20 * STATEMENTS
    assert costs[3] - costs[2] <= 20 * STATEMENTS
