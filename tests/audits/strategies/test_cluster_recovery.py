"""Actions that the strategy ``cluster_recovery`` proposes."""

from typing import Any
from uuid import uuid4

import pytest

from audits.goals import GOALS
from audits.planner import plan_sequences
from audits.strategies.base import Solution
from cluster.snapshot.cloud import MemberSnapshot, NodeClusterSnapshot
from tests.audits.clusters import cluster, listed, solve
from watcher_site.refusals import Invalid


def node_cluster(name: str, *states: str | None, desired: int | None = None, **attributes: Any) -> NodeClusterSnapshot:
    """Return a cluster with an ACTIVE node for each given state of a server (None: the server is missing)."""
    members = [MemberSnapshot(uuid4(), f"{name}-{number}", "ACTIVE", state) for number, state in enumerate(states)]
    values = {"status": "ACTIVE", "desired_capacity": len(states) if desired is None else desired, **attributes}
    return NodeClusterSnapshot(uuid4(), name, members=members, **values)


def decide(*clusters: NodeClusterSnapshot, **parameters: Any) -> Solution:
    return solve("cluster_recovery", cluster(clusters=clusters), **parameters)


def recovered(solution: Solution) -> list[str]:
    return [inputs["resource_name"] for kind, inputs in listed(solution) if kind == "CLUSTER_RECOVER"]


def test_cluster_is_checked_and_then_recovered() -> None:
    web = node_cluster("web", "active", None)
    named = {"resource_id": str(web.uuid), "resource_name": "web"}
    assert listed(decide(web)) == [
        ("CLUSTER_CHECK", named),
        ("CLUSTER_RECOVER", {**named, "check_capacity": True}),
    ]


def test_healthy_clusters_of_desired_size_are_ignored() -> None:
    clusters = [
        node_cluster("well", "active"),
        node_cluster("empty"),
        node_cluster("stopped", "stopped"),
        node_cluster("small", "active", desired=2),
    ]
    assert recovered(decide(*clusters)) == ["stopped", "small"]


@pytest.mark.parametrize("attributes", [{"is_occupied": True}, {"status": "INIT"}, {"status": "DELETING"}], ids=str)
def test_cluster_with_another_operation_is_ignored(attributes: dict[str, Any]) -> None:
    assert listed(decide(node_cluster("web", None, **attributes))) == []


def test_size_is_not_restored_without_restore_capacity() -> None:
    solution = decide(node_cluster("small", desired=2), node_cluster("web", None), restore_capacity=False)
    assert recovered(solution) == ["web"]
    assert "check_capacity" not in listed(solution)[1][1]


def test_recovery_uses_the_requested_operation() -> None:
    assert listed(decide(node_cluster("web", None), operation="REBOOT"))[1][1]["operation"] == "REBOOT"


@pytest.mark.parametrize("by_uuid", [True, False])
def test_only_given_clusters_are_recovered(by_uuid: bool) -> None:
    web, db = node_cluster("Web", None), node_cluster("db", None)
    assert recovered(decide(web, db, clusters=[str(web.uuid) if by_uuid else "web"])) == ["Web"]


def test_unknown_cluster_is_refused() -> None:
    with pytest.raises(Invalid, match="clusters: there is no cluster db"):
        decide(node_cluster("web"), clusters=["web", "db"])


def test_solution_reports_the_indicators_of_its_goal() -> None:
    solution = decide(node_cluster("web", None, "stopped", desired=3), node_cluster("well", "active"))
    assert solution.indicators == {
        "clusters_count": 2,
        "recovered_clusters_count": 1,
        "broken_nodes_count": 2,
        "missing_nodes_count": 1,
    }
    GOALS["cluster_health"].check(solution.indicators)
    assert GOALS["cluster_health"].global_efficacy(solution.indicators)[0]["value"] == 50


def test_recovery_depends_on_the_check_of_its_own_cluster_only() -> None:
    planned = plan_sequences(decide(node_cluster("web", None), node_cluster("db", None)).actions)
    parents = {one.uuid: one for one in planned}
    chains = [(one, [parents[uuid] for uuid in one.parents]) for one in planned if one.parents]
    assert [(one.action_type, [parent.action_type for parent in before]) for one, before in chains] == [
        ("CLUSTER_RECOVER", ["CLUSTER_CHECK"])
    ] * 2
    for one, [before] in chains:
        assert one.input_parameters["resource_id"] == before.input_parameters["resource_id"]
