"""Which clusters of nodes are recovered, and how."""

from typing import Any
from uuid import uuid4

import pytest

from audits.goals import GOALS
from audits.planner import plan_sequences
from audits.strategies.base import Solution
from cluster.snapshot.cloud import MemberSnapshot, NodeClusterSnapshot
from tests.audits.clusters import cluster, listed, solve
from watcher_site.refusals import Invalid


def kept(name: str, *states: str | None, desired: int | None = None, **attributes: Any) -> NodeClusterSnapshot:
    """Return a cluster whose nodes read ACTIVE, by the states of their servers."""
    members = [MemberSnapshot(uuid4(), f"{name}-{number}", "ACTIVE", state) for number, state in enumerate(states)]
    values = {"status": "ACTIVE", "desired_capacity": len(states) if desired is None else desired, **attributes}
    return NodeClusterSnapshot(uuid4(), name, members=members, **values)


def decide(*clusters: NodeClusterSnapshot, **parameters: Any) -> Solution:
    return solve("cluster_recovery", cluster(clusters=clusters), **parameters)


def recovered(solution: Solution) -> list[str]:
    return [inputs["resource_name"] for kind, inputs in listed(solution) if kind == "CLUSTER_RECOVER"]


def test_a_cluster_is_looked_at_and_then_recovered() -> None:
    web = kept("web", "active", None)
    named = {"resource_id": str(web.uuid), "resource_name": "web"}
    assert listed(decide(web)) == [
        ("CLUSTER_CHECK", named),
        ("CLUSTER_RECOVER", {**named, "check_capacity": True}),
    ]


def test_only_clusters_that_need_it_are_recovered() -> None:
    clusters = [kept("well", "active"), kept("empty"), kept("stopped", "stopped"), kept("small", "active", desired=2)]
    assert recovered(decide(*clusters)) == ["stopped", "small"]


@pytest.mark.parametrize("attributes", [{"is_occupied": True}, {"status": "INIT"}, {"status": "DELETING"}], ids=str)
def test_a_cluster_that_something_else_is_done_to_is_left_alone(attributes: dict[str, Any]) -> None:
    assert listed(decide(kept("web", None, **attributes))) == []


def test_the_size_is_left_alone_where_that_is_requested() -> None:
    solution = decide(kept("small", desired=2), kept("web", None), restore_capacity=False)
    assert recovered(solution) == ["web"]
    assert "check_capacity" not in listed(solution)[1][1]


def test_the_operation_is_the_requested_one() -> None:
    assert listed(decide(kept("web", None), operation="REBOOT"))[1][1]["operation"] == "REBOOT"


@pytest.mark.parametrize("by_uuid", [True, False])
def test_only_the_clusters_that_are_named_are_recovered(by_uuid: bool) -> None:
    web, db = kept("Web", None), kept("db", None)
    assert recovered(decide(web, db, clusters=[str(web.uuid) if by_uuid else "web"])) == ["Web"]


def test_a_cluster_that_there_is_not_is_refused() -> None:
    with pytest.raises(Invalid, match="clusters: there is no cluster db"):
        decide(kept("web"), clusters=["web", "db"])


def test_it_reports_what_its_goal_asks_for() -> None:
    solution = decide(kept("web", None, "stopped", desired=3), kept("well", "active"))
    assert solution.indicators == {
        "clusters_count": 2,
        "recovered_clusters_count": 1,
        "broken_nodes_count": 2,
        "missing_nodes_count": 1,
    }
    GOALS["cluster_health"].check(solution.indicators)
    assert GOALS["cluster_health"].global_efficacy(solution.indicators)[0]["value"] == 50


def test_each_cluster_is_recovered_after_the_look_at_it_and_waits_for_no_other() -> None:
    planned = plan_sequences(decide(kept("web", None), kept("db", None)).actions)
    parents = {one.uuid: one for one in planned}
    chains = [(one, [parents[uuid] for uuid in one.parents]) for one in planned if one.parents]
    assert [(one.action_type, [parent.action_type for parent in before]) for one, before in chains] == [
        ("CLUSTER_RECOVER", ["CLUSTER_CHECK"])
    ] * 2
    for one, [before] in chains:
        assert one.input_parameters["resource_id"] == before.input_parameters["resource_id"]
