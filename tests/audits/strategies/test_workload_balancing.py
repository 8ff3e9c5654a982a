"""The strategies that bring loads closer together."""

from typing import Any

import pytest

from cluster.snapshot import ClusterSnapshot
from tests.audits.clusters import cluster, listed, moves, node, pool, server, solve, storage, volume


def lopsided(**attributes: Any) -> ClusterSnapshot:
    servers = [server(name, **attributes) for name in "abcd"]
    measured = dict.fromkeys("abcd", 100)
    return cluster(
        node("compute1", *servers),
        node("compute2"),
        measured={"instance_cpu_usage": measured, "use": measured},
    )


def test_workload_balance_moves_one_server_from_the_heaviest_to_the_lightest() -> None:
    solution = solve("workload_balance", lopsided(), threshold=25)
    assert moves(solution) == [("a", "compute1", "compute2")]
    assert solution.indicators == {
        "instance_migrations_count": 1,
        "instances_count": 4,
        "standard_deviation_before_audit": 0.25,
        "standard_deviation_after_audit": 0.125,
    }


def test_workload_balance_leaves_a_node_below_the_threshold() -> None:
    assert moves(solve("workload_balance", lopsided(), threshold=51)) == []


def test_workload_balance_never_brings_the_destination_to_the_threshold() -> None:
    assert moves(solve("workload_balance", lopsided(), threshold=12)) == []


def test_workload_balance_counts_memory_if_required() -> None:
    seen = cluster(
        node("compute1", server("a"), server("b")), node("compute2"), measured={"use": {"a": 9000, "b": 9000}}
    )
    assert moves(solve("workload_balance", seen, metrics="instance_ram_usage", threshold=50)) == [
        ("a", "compute1", "compute2")
    ]


@pytest.mark.parametrize("strategy", ["workload_balance", "workload_stabilization"])
def test_an_excluded_server_does_not_move_to_balance(strategy: str) -> None:
    assert moves(solve(strategy, lopsided(watcher_exclude=True))) == []


@pytest.mark.parametrize("choice", ["retry", "cycle", "fullsearch"])
def test_workload_stabilization_moves_servers_until_a_deviation_is_under_its_threshold(choice: str) -> None:
    solution = solve("workload_stabilization", lopsided(), host_choice=choice, thresholds={"instance_cpu_usage": 0.13})
    assert len(moves(solution)) == 1
    assert solution.indicators["standard_deviation_after_audit"] == pytest.approx(0.125)


def test_workload_stabilization_goes_on_while_it_helps() -> None:
    solution = solve("workload_stabilization", lopsided(), host_choice="fullsearch")
    assert len(moves(solution)) == 2
    assert solution.indicators["standard_deviation_after_audit"] == pytest.approx(0)


def test_workload_stabilization_rests_below_the_threshold() -> None:
    assert moves(solve("workload_stabilization", lopsided(), thresholds={"instance_cpu_usage": 0.3})) == []


def test_a_weight_of_nothing_makes_a_metric_count_for_nothing() -> None:
    assert moves(solve("workload_stabilization", lopsided(), weights={"instance_cpu_usage_weight": 0})) == []


def test_the_smallest_volumes_leave_a_full_pool_for_the_emptiest() -> None:
    held = volume("small", size=5), volume("medium", size=10), volume("large", size=75)
    seen = cluster(node("compute1"), storage=storage(pool("a@lvm#one", *held), pool("b@lvm#one"), pool("c@lvm#one")))
    found = listed(solve("storage_capacity_balance", seen))
    assert [(kind, action["resource_name"], action["destination_node"]) for kind, action in found] == [
        ("volume_migrate", "small", "b@lvm#one"),
        ("volume_migrate", "medium", "c@lvm#one"),
    ]


def test_a_volume_with_snapshots_stays_in_its_full_pool() -> None:
    full = pool("a@lvm#one", volume("data", size=90, has_snapshots=True))
    seen = cluster(node("compute1"), storage=storage(full, pool("b@lvm#one", total=1000)))
    assert solve("storage_capacity_balance", seen).actions == []


def test_a_volume_is_retyped_where_another_type_has_the_same_specs() -> None:
    full = pool("a@lvm#one", volume("data", size=90, volume_type="fast"))
    kept = storage(full, pool("b@lvm#one", total=1000), fast={"speed": "1"}, quick={"speed": "1"}, slow={})
    kept.nodes["b@lvm"].volume_type = ["quick", "slow"]
    [(_, action)] = listed(solve("storage_capacity_balance", cluster(node("compute1"), storage=kept)))
    assert (action["migration_type"], action["destination_type"]) == ("retype", "quick")
