"""Strategies of the goal ``workload_balancing``."""

from typing import Any

import pytest

from cluster.snapshot import ClusterSnapshot
from tests.audits.clusters import cluster, listed, moves, node, pool, server, solve, storage, volume


def unbalanced_cluster(**attributes: Any) -> ClusterSnapshot:
    servers = [server(name, **attributes) for name in "abcd"]
    measured = dict.fromkeys("abcd", 100)
    return cluster(
        node("compute1", *servers),
        node("compute2"),
        measured={"instance_cpu_usage": measured, "use": measured},
    )


def test_workload_balance_migrates_one_server_from_the_most_to_the_least_loaded_node() -> None:
    solution = solve("workload_balance", unbalanced_cluster(), threshold=25)
    assert moves(solution) == [("a", "compute1", "compute2")]
    assert solution.indicators == {
        "instance_migrations_count": 1,
        "instances_count": 4,
        "standard_deviation_before_audit": 0.25,
        "standard_deviation_after_audit": 0.125,
    }


def test_workload_balance_ignores_a_node_below_the_threshold() -> None:
    assert moves(solve("workload_balance", unbalanced_cluster(), threshold=51)) == []


def test_workload_balance_keeps_the_destination_below_the_threshold() -> None:
    assert moves(solve("workload_balance", unbalanced_cluster(), threshold=12)) == []


def test_workload_balance_uses_memory_with_instance_ram_usage() -> None:
    seen = cluster(
        node("compute1", server("a"), server("b")), node("compute2"), measured={"use": {"a": 9000, "b": 9000}}
    )
    assert moves(solve("workload_balance", seen, metrics="instance_ram_usage", threshold=50)) == [
        ("a", "compute1", "compute2")
    ]


@pytest.mark.parametrize("strategy", ["workload_balance", "workload_stabilization"])
def test_excluded_server_is_not_migrated(strategy: str) -> None:
    assert moves(solve(strategy, unbalanced_cluster(watcher_exclude=True))) == []


@pytest.mark.parametrize("choice", ["retry", "cycle", "fullsearch"])
def test_workload_stabilization_migrates_until_the_deviation_is_below_the_threshold(choice: str) -> None:
    solution = solve(
        "workload_stabilization", unbalanced_cluster(), host_choice=choice, thresholds={"instance_cpu_usage": 0.13}
    )
    assert len(moves(solution)) == 1
    assert solution.indicators["standard_deviation_after_audit"] == pytest.approx(0.125)


def test_workload_stabilization_migrates_while_the_deviation_decreases() -> None:
    solution = solve("workload_stabilization", unbalanced_cluster(), host_choice="fullsearch")
    assert len(moves(solution)) == 2
    assert solution.indicators["standard_deviation_after_audit"] == pytest.approx(0)


def test_workload_stabilization_migrates_no_server_below_the_threshold() -> None:
    assert moves(solve("workload_stabilization", unbalanced_cluster(), thresholds={"instance_cpu_usage": 0.3})) == []


def test_workload_stabilization_ignores_a_metric_with_weight_zero() -> None:
    assert moves(solve("workload_stabilization", unbalanced_cluster(), weights={"instance_cpu_usage_weight": 0})) == []


def test_storage_capacity_balance_moves_the_smallest_volumes_to_the_emptiest_pools() -> None:
    held = volume("small", size=5), volume("medium", size=10), volume("large", size=75)
    seen = cluster(node("compute1"), storage=storage(pool("a@lvm#one", *held), pool("b@lvm#one"), pool("c@lvm#one")))
    found = listed(solve("storage_capacity_balance", seen))
    assert [(kind, action["resource_name"], action["destination_node"]) for kind, action in found] == [
        ("volume_migrate", "small", "b@lvm#one"),
        ("volume_migrate", "medium", "c@lvm#one"),
    ]


def test_storage_capacity_balance_ignores_a_volume_with_snapshots() -> None:
    full = pool("a@lvm#one", volume("data", size=90, has_snapshots=True))
    seen = cluster(node("compute1"), storage=storage(full, pool("b@lvm#one", total=1000)))
    assert solve("storage_capacity_balance", seen).actions == []


def test_storage_capacity_balance_retypes_to_a_type_with_equal_specs() -> None:
    full = pool("a@lvm#one", volume("data", size=90, volume_type="fast"))
    kept = storage(full, pool("b@lvm#one", total=1000), fast={"speed": "1"}, quick={"speed": "1"}, slow={})
    kept.nodes["b@lvm"].volume_type = ["quick", "slow"]
    [(_, action)] = listed(solve("storage_capacity_balance", cluster(node("compute1"), storage=kept)))
    assert (action["migration_type"], action["destination_type"]) == ("retype", "quick")
