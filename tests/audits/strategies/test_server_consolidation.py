"""Strategies of the goal ``server_consolidation``."""

import pytest

from audits.strategies.consolidation.vm_workload_consolidation import MOST, NOW
from tests.audits.clusters import cluster, moves, node, server, services, solve

STRATEGIES = ["basic", "vm_workload_consolidation", "node_resource_consolidation"]
QUIET = {"instance_cpu_usage": {"a": 50, "b": 20, "c": 10}}


def two_nodes() -> list[object]:
    return [node("compute1", server("a", vcpus=8)), node("compute2", server("b"))]


@pytest.mark.parametrize(("strategy", "parameters"), [*((name, {}) for name in STRATEGIES[:2])])
def test_least_loaded_node_is_emptied_and_disabled(strategy: str, parameters: dict) -> None:
    solution = solve(strategy, cluster(*two_nodes(), measured=QUIET), **parameters)
    assert moves(solution) == [("b", "compute2", "compute1")]
    assert services(solution) == [("compute2", "disabled")]
    assert solution.indicators == {
        "compute_nodes_count": 2,
        "released_compute_nodes_count": 1,
        "instance_migrations_count": 1,
    }


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_node_with_an_excluded_server_is_not_emptied(strategy: str) -> None:
    nodes = node("compute1", server("a", vcpus=8)), node("compute2", server("b", watcher_exclude=True), server("c"))
    assert moves(solve(strategy, cluster(*nodes, measured=QUIET))) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_node_is_not_emptied_if_only_some_of_its_servers_fit_elsewhere(strategy: str) -> None:
    nodes = node("compute1", server("a", vcpus=12)), node("compute2", server("b", vcpus=4), server("c", vcpus=4))
    assert moves(solve(strategy, cluster(*nodes, measured=QUIET))) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_server_pinned_to_a_zone_does_not_leave_the_zone(strategy: str) -> None:
    nodes = node("compute1", server("a", vcpus=8), zone="east"), node("compute2", server("b", pinned_az="west"))
    assert moves(solve(strategy, cluster(*nodes, measured=QUIET))) == []


def test_basic_stops_after_migration_attempts_failed_nodes() -> None:
    nodes = [
        node("compute1", server("a", vcpus=8)),
        node("compute2", server("b", watcher_exclude=True)),
        node("compute3", server("c")),
    ]
    measured = {"instance_cpu_usage": {"a": 90, "b": 1, "c": 20}}
    assert moves(solve("basic", cluster(*nodes, measured=measured), migration_attempts=1)) == []
    assert moves(solve("basic", cluster(*nodes, measured=measured))) == [("c", "compute3", "compute1")]


def test_basic_prefers_measurements_of_the_node_over_measurements_of_its_servers() -> None:
    measured = {**QUIET, "host_cpu_usage": {"compute1": 1, "compute2": 99}}
    assert moves(solve("basic", cluster(*two_nodes(), measured=measured))) == [("a", "compute1", "compute2")]


def test_smallest_server_of_an_overloaded_node_is_migrated() -> None:
    busy = node("compute1", server("a", vcpus=12), server("b", vcpus=4), capacity_vcpus=64)
    measured = {"instance_cpu_usage": {"a": 100, "b": 100, "c": 50}, "host_cpu_usage": {"compute1": 110}}
    solution = solve("vm_workload_consolidation", cluster(busy, node("compute2", server("c")), measured=measured))
    assert moves(solution) == [("b", "compute1", "compute2")]


def test_consolidation_uses_measured_load_and_allocated_capacity() -> None:
    nodes = node("compute1", server("a", vcpus=14)), node("compute2", server("b", vcpus=2))
    full = {"instance_cpu_usage": {"a": 100, "b": 100}}
    assert moves(solve("vm_workload_consolidation", cluster(*nodes, measured=full))) == [("b", "compute2", "compute1")]
    crowded = {**full, "host_cpu_usage": {"compute1": 95}}
    assert moves(solve("vm_workload_consolidation", cluster(*nodes, measured=crowded))) == []


def test_consolidation_reserves_capacity_for_the_maximum_load_of_servers() -> None:
    nodes = node("compute1", server("a", vcpus=12)), node("compute2", server("b", vcpus=4))
    quiet = {"instance_cpu_usage": {"a": 60, "b": 20}, MOST: {"a": 70, "b": 30}}
    assert moves(solve("vm_workload_consolidation", cluster(*nodes, measured=quiet))) == [
        ("b", "compute2", "compute1")
    ]
    # The servers use 13 of 16 vcpus on average, and 16.5 if both reach the middle of average and maximum.
    fitful = {"instance_cpu_usage": {"a": 75, "b": 100}, MOST: {"a": 133, "b": 100}}
    assert moves(solve("vm_workload_consolidation", cluster(*nodes, measured=fitful))) == []


def test_node_overloaded_now_is_relieved_even_if_its_average_load_is_low() -> None:
    busy = node("compute1", server("a", vcpus=12), server("b", vcpus=8), capacity_vcpus=64)
    calm = {"instance_cpu_usage": {"a": 30, "b": 30, "c": 60}}
    other = node("compute2", server("c", vcpus=8))
    assert moves(
        solve("vm_workload_consolidation", cluster(busy, other, measured={**calm, NOW: {"a": 100, "b": 60}}))
    ) == [("b", "compute1", "compute2")]


def test_node_overloaded_on_average_but_not_now_is_ignored() -> None:
    busy = node("compute1", server("a", vcpus=12), server("b", vcpus=8), capacity_vcpus=64)
    other = node("compute2", server("c", vcpus=12))
    measured = {"instance_cpu_usage": {"a": 90, "b": 90, "c": 90}, NOW: {"a": 50, "b": 50, "c": 90}}
    assert moves(solve("vm_workload_consolidation", cluster(busy, other, measured=measured))) == []


@pytest.mark.parametrize(("reason", "expected"), [("watcher_disabled", 1), ("broken fan", 0)])
def test_node_disabled_by_a_user_is_not_enabled(reason: str, expected: int) -> None:
    busy = node("compute1", server("a", vcpus=12), server("b", vcpus=8), capacity_vcpus=64)
    closed = node("compute2", status="disabled", disabled_reason=reason)
    measured = {"instance_cpu_usage": {"a": 100, "b": 100}}
    solution = solve("vm_workload_consolidation", cluster(busy, closed, measured=measured))
    assert services(solution) == [("compute2", "enabled")] * expected
    assert len(moves(solution)) == expected


@pytest.mark.parametrize(("state", "kind"), [("paused", "live"), ("stopped", "cold")])
def test_migration_type_depends_on_the_state_of_the_server(state: str, kind: str) -> None:
    nodes = node("compute1", server("a", vcpus=8)), node("compute2", server("b", state=state))
    [migration, _] = solve("vm_workload_consolidation", cluster(*nodes, measured=QUIET)).actions
    assert migration.input_parameters["migration_type"] == kind


def test_free_nodes_are_disabled_while_the_scheduler_chooses_destinations() -> None:
    solution = solve("node_resource_consolidation", cluster(*two_nodes(), node("compute3")))
    assert moves(solution) == [("b", "compute2", None)]
    assert services(solution) == [
        ("compute3", "disabled"),
        ("compute2", "disabled"),
        ("compute3", "enabled"),
        ("compute2", "enabled"),
    ]


def test_host_choice_specify_sets_destinations() -> None:
    solution = solve("node_resource_consolidation", cluster(*two_nodes()), host_choice="specify")
    assert (moves(solution), services(solution)) == ([("b", "compute2", "compute1")], [])


def test_no_node_is_disabled_if_no_node_can_be_emptied() -> None:
    assert solve("node_resource_consolidation", cluster(node("compute1", server("a")), node("compute2"))).actions == []
