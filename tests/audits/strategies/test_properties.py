"""Properties of the strategies that migrate servers, for random clusters."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audits.operations.strategies import complete_parameters
from audits.strategies.balancing.workload_stabilization import Stabilization, WorkloadStabilization
from cluster.snapshot import ClusterSnapshot
from tests.audits.clusters import cluster, listed, moves, node, server, solve

STATES = ["active", "paused", "stopped", "suspended", "error"]
STRATEGIES: list[tuple[str, Mapping[str, Any]]] = [
    ("basic", {}),
    ("vm_workload_consolidation", {}),
    ("node_resource_consolidation", {"host_choice": "specify"}),
    ("workload_balance", {"threshold": 5}),
    ("workload_stabilization", {"host_choice": "fullsearch", "thresholds": {"instance_cpu_usage": 0.01}}),
    ("workload_stabilization", {"host_choice": "retry", "thresholds": {"instance_cpu_usage": 0.01}}),
]


@st.composite
def clusters(draw: st.DrawFn) -> ClusterSnapshot:
    use: dict[str, float] = {}
    nodes = []
    for number in range(draw(st.integers(1, 6))):
        servers = []
        for position in range(draw(st.integers(0, 4))):
            name = f"s{number}-{position}"
            use[name] = draw(st.integers(0, 100))
            servers.append(
                server(
                    name,
                    vcpus=draw(st.integers(1, 4)),
                    memory=draw(st.sampled_from([512, 8000])),
                    state=draw(st.sampled_from(STATES)),
                    watcher_exclude=draw(st.booleans()),
                )
            )
        status = draw(st.sampled_from(["enabled", "enabled", "disabled"]))
        state = draw(st.sampled_from(["up", "up", "up", "down"]))
        vcpus = draw(st.sampled_from([16, 16, 32]))
        nodes.append(node(f"n{number}", *servers, vcpus=vcpus, status=status, state=state))
    return cluster(*nodes, measured={"instance_cpu_usage": use, "use": use})


@pytest.mark.parametrize(("strategy", "parameters"), STRATEGIES)
@given(seen=clusters())
def test_migrations_respect_capacity_exclusions_and_states(
    strategy: str, parameters: Mapping[str, Any], seen: ClusterSnapshot
) -> None:
    solution = solve(strategy, seen, **parameters)
    servers = {server.name: server for server in seen.servers}
    for name, source, target in moves(solution):
        moved = servers[name]
        assert not moved.watcher_exclude
        assert moved.state in {"active", "paused", "stopped"}
        seen.nodes[source].servers.remove(moved)  # it is on the node that the action names, and moves once
        assert target is not None
        assert seen.nodes[target].status == "enabled"
        assert seen.nodes[target].state == "up"
        seen.nodes[target].servers.append(moved)
    received = {target for _, _, target in moves(solution)}
    for place in map(seen.nodes.__getitem__, received):
        assert min(place.free_vcpus, place.free_memory, place.free_disk) >= 0


@given(seen=clusters())
def test_full_search_finds_the_best_destination_among_its_candidates(seen: ClusterSnapshot) -> None:
    parameters = complete_parameters(WorkloadStabilization.schema, {"host_choice": "fullsearch"})
    search = Stabilization(seen, parameters)
    for source in search.places:
        for moved in source.servers.values():
            tried = [search.simulate(moved, source, target).deviation for target in search.targets(source)]
            others = [place for place in search.places if place is not source]
            best = [search.simulate(moved, source, target).deviation for target in others]
            assert min(tried, default=0) == pytest.approx(min(best, default=0))


@pytest.mark.parametrize("strategy", ["basic", "vm_workload_consolidation", "node_resource_consolidation"])
@given(seen=clusters())
def test_disabled_node_is_emptied_and_is_no_destination(strategy: str, seen: ClusterSnapshot) -> None:
    solution = solve(strategy, seen)
    gone = {name for name, _, _ in moves(solution)}
    received = {target for _, _, target in moves(solution)}
    for kind, action in listed(solution):
        if kind == "change_nova_service_state" and action["state"] == "disabled":
            there = {server.name for server in seen.nodes[action["resource_name"]].servers}
            assert there <= gone
            assert action["resource_name"] not in received
