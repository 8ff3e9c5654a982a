"""Strategies for energy, temperature, airflow, noisy neighbors and zone migration, and the sample strategies."""

from typing import Any

import pytest

from audits.strategies.base import Solution
from cluster.snapshot import ClusterSnapshot
from tests.audits.clusters import cluster, listed, moves, node, pool, server, solve, storage, volume
from watcher_site.refusals import Invalid


def switched(solution: Solution) -> list[tuple[str, str]]:
    return [(action["resource_name"], action["state"]) for _, action in listed(solution)]


def test_saving_energy_switches_off_idle_nodes_except_the_reserve() -> None:
    nodes = [node("compute1", server("a")), node("compute2"), node("compute3"), node("compute4")]
    assert switched(solve("saving_energy", cluster(*nodes))) == [("compute3", "off"), ("compute4", "off")]


def test_saving_energy_switches_on_nodes_for_the_reserve() -> None:
    nodes = [node("compute1", server("a")), node("compute2", power_state="off"), node("compute3", power_state="off")]
    assert switched(solve("saving_energy", cluster(*nodes))) == [("compute2", "on")]


def test_saving_energy_reserves_a_percentage_of_the_used_nodes() -> None:
    busy = [node(f"busy{number}", server(f"s{number}")) for number in range(4)]
    idle = [node(f"idle{number}") for number in range(3)]
    solution = solve("saving_energy", cluster(*busy, *idle), free_used_percent=50)
    assert switched(solution) == [("idle2", "off")]


def test_outlet_temperature_migrates_a_server_from_the_hottest_to_the_coolest_node() -> None:
    nodes = [node("hot", server("a")), node("warm"), node("cool")]
    seen = cluster(*nodes, measured={"temperature": {"hot": 40, "warm": 30, "cool": 20}})
    assert moves(solve("outlet_temperature", seen)) == [("a", "hot", "cool")]


def airflow_cluster(**known: float) -> ClusterSnapshot:
    measured = {"airflow": {"windy": 500, "still": 100}, **{name: {"windy": value} for name, value in known.items()}}
    return cluster(node("windy", server("a"), server("b")), node("still"), measured=measured)


def test_uniform_airflow_migrates_all_servers_of_a_node_with_a_broken_fan() -> None:
    assert len(moves(solve("uniform_airflow", airflow_cluster(power=100, inlet_temperature=20)))) == 2


def test_uniform_airflow_migrates_one_server_of_a_loaded_node() -> None:
    assert moves(solve("uniform_airflow", airflow_cluster(power=900, inlet_temperature=20))) == [
        ("a", "windy", "still")
    ]


def neighbor_cluster(before: dict[str, float], now: dict[str, float]) -> ClusterSnapshot:
    important = server("important", metadata={"watcher-priority": "1"})
    return cluster(
        node("compute1", important, server("noisy")), node("compute2"), measured={"before": before, "now": now}
    )


def test_noisy_neighbor_migrates_a_server_that_displaces_cache_of_a_priority_server() -> None:
    seen = neighbor_cluster({"important": 100, "noisy": 100}, {"important": 50, "noisy": 200})
    assert moves(solve("noisy_neighbor", seen)) == [("noisy", "compute1", "compute2")]


def test_noisy_neighbor_ignores_a_server_that_displaces_no_cache() -> None:
    seen = neighbor_cluster({"important": 100, "noisy": 100}, {"important": 90, "noisy": 200})
    assert moves(solve("noisy_neighbor", seen)) == []


def evacuate(seen: ClusterSnapshot, **parameters: Any) -> Solution:
    return solve("zone_migration", seen, **{"compute_nodes": [{"src_node": "compute1"}], **parameters})


def test_zone_migration_limits_the_number_of_migrations() -> None:
    solution = evacuate(cluster(node("compute1", *map(server, "abc"))))
    assert moves(solution) == [("a", "compute1", None), ("b", "compute1", None)]
    assert solution.indicators["live_migrate_instance_count"] == 3
    assert solution.indicators["planned_live_migrate_instance_count"] == 2


def test_zone_migration_moves_volumes_before_servers_and_the_attached_server_first() -> None:
    first, second = server("first"), server("second")
    data = volume("data", status="in-use", attachments=[{"server_id": str(second.uuid), "attachment_id": "x"}])
    seen = cluster(node("compute1", first, second), storage=storage(pool("a@lvm#one", data)))
    pools = [{"src_pool": "a@lvm#one", "dst_pool": "b@lvm#one"}]
    solution = evacuate(seen, storage_pools=pools, with_attached_volume=True)
    assert [action["resource_name"] for _, action in listed(solution)] == ["data", "second", "first"]


def test_zone_migration_moves_large_servers_of_a_priority_project_first() -> None:
    servers = [server("a"), server("b", project_id="blue"), server("c", project_id="blue", vcpus=8)]
    solution = evacuate(
        cluster(node("compute1", *servers)),
        parallel_per_node=3,
        priority={"project": ["blue"], "compute": ["vcpu_num"]},
    )
    assert [name for name, _, _ in moves(solution)] == ["c", "b", "a"]


@pytest.mark.parametrize(
    "priority",
    [{"project": ["blue"], "compute": "vcpu_num"}, {"compute": "vcpu_num", "project": ["blue"]}],
    ids=["project first", "size first"],
)
def test_zone_migration_orders_by_project_before_size_for_any_order_of_keys(priority: dict[str, Any]) -> None:
    servers = [server("a", vcpus=8), server("b", project_id="blue"), server("c", project_id="blue", vcpus=4)]
    solution = evacuate(cluster(node("compute1", *servers)), parallel_per_node=3, priority=priority)
    assert [name for name, _, _ in moves(solution)] == ["c", "b", "a"]


def test_zone_migration_counts_volumes_in_all_volume_indicators() -> None:
    held = volume("slow", volume_type="slow"), volume("plain")
    pools = [
        {"src_pool": "a@lvm#one", "src_type": "slow", "dst_type": "fast"},
        {"src_pool": "a@lvm#one", "dst_pool": "b@lvm#one"},
    ]
    solution = evacuate(
        cluster(storage=storage(pool("a@lvm#one", *held))), compute_nodes=[], storage_pools=pools, parallel_per_pool=1
    )
    assert {name: value for name, value in solution.indicators.items() if "volume" in name} == {
        "volume_migrate_count": 2,
        "planned_volume_migrate_count": 1,
        "volume_update_count": 2,
        "planned_volume_update_count": 1,
    }


@pytest.mark.parametrize("destination", [{}, {"dst_pool": "b@lvm#one", "dst_type": "fast"}])
def test_zone_migration_requires_exactly_one_destination_of_a_pool(destination: dict[str, str]) -> None:
    with pytest.raises(Invalid, match="storage_pools"):
        evacuate(cluster(), storage_pools=[{"src_pool": "a@lvm#one", **destination}])


def test_dummy_with_resize_proposes_actions_of_each_type() -> None:
    kinds = [kind for kind, _ in listed(solve("dummy_with_resize", cluster()))]
    assert kinds == ["nop", "nop", "sleep", "migrate", "migrate", "resize"]


def test_dummy_with_scorer_proposes_messages_with_the_scores() -> None:
    messages = [action.get("message", "") for _, action in listed(solve("dummy_with_scorer", cluster()))]
    assert messages[1].startswith("Detected Workload: ")
    assert messages[2].startswith("AVG Scorer result: ")
