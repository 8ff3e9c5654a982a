"""Filtering of the cluster model by the scope of an audit."""

from typing import Any

import pytest

from audits.engine.scope import apply_scope
from audits.operations.scope import check_scope
from cluster.snapshot import ClusterSnapshot
from tests.builders import make_aggregate, make_node, make_pool, make_server, make_volume, make_volume_type

pytestmark = pytest.mark.django_db


def excluding(**rule: Any) -> list[Any]:
    return [{"compute": [{"exclude": [rule]}]}]


def servers_in_scope(scope: list[Any]) -> dict[str, bool]:
    """Return the servers of a small cloud that are in a scope, each with whether it is marked as excluded."""
    node, other = make_node("compute1"), make_node("compute2")
    make_server("web-1", node, project_id="blue", metadata={"optimize": "No"})
    make_server("web-2", other, project_id="green", uuid="aaaaaaaa-0000-4000-8000-000000000000")
    return {server.name: server.watcher_exclude for server in apply_scope(ClusterSnapshot.load(), scope).servers}


def test_excluded_node_is_removed_with_its_servers() -> None:
    assert servers_in_scope(excluding(compute_nodes=[{"name": "compute1"}])) == {"web-2": False}


def test_servers_of_an_excluded_project_are_kept_and_marked() -> None:
    assert servers_in_scope(excluding(projects=[{"uuid": "blue"}])) == {"web-1": True, "web-2": False}


def test_excluded_server_is_kept_and_marked() -> None:
    scope = excluding(instances=[{"uuid": "AAAAAAAA-0000-4000-8000-000000000000"}])
    assert servers_in_scope(scope) == {"web-1": False, "web-2": True}


def test_servers_with_excluded_metadata_are_kept_and_marked() -> None:
    assert servers_in_scope(excluding(instance_metadata=[{"optimize": "no"}])) == {"web-1": True, "web-2": False}


def test_rule_outside_of_compute_and_storage_applies_to_compute() -> None:
    assert servers_in_scope([{"exclude": [{"projects": [{"uuid": "blue"}]}]}]) == {"web-1": True, "web-2": False}


SSD, EDGE, ZONE = "ssd", "edge", "az2"


def nodes_in_scope(*rules: dict[str, Any]) -> str:
    """Return the numbers of the nodes in a scope: 1 is in ssd, 2 in ssd and edge, 3 in the zone az2, 4 in none."""
    nodes = [make_node(f"compute{number}", zone=ZONE if number == 3 else "nova") for number in (1, 2, 3, 4)]
    make_aggregate(1, SSD, nodes[0], nodes[1])
    make_aggregate(2, EDGE, nodes[1])
    left = apply_scope(ClusterSnapshot.load(), [{"compute": list(rules)}]).nodes
    return "".join(hostname.removeprefix("compute") for hostname in left)


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ([], "1234"),
        ([{"host_aggregates": [{"id": 1}]}], "12"),
        ([{"host_aggregates": [{"name": EDGE}]}], "2"),
        ([{"host_aggregates": [{"id": 1}, {"name": EDGE}]}], "12"),
        ([{"host_aggregates": [{"id": "*"}]}], "12"),
        ([{"availability_zones": [{"name": ZONE}]}], "3"),
        ([{"availability_zones": [{"name": "*"}]}], "1234"),
        ([{"host_aggregates": [{"id": 2}]}, {"availability_zones": [{"name": ZONE}]}], "23"),
        ([{"host_aggregates": [{"id": 9}]}], ""),
        ([{"availability_zones": [{"name": "mars"}]}], ""),
        ([{"host_aggregates": []}], "1234"),
        ([{"exclude": [{"host_aggregates": [{"name": EDGE}]}]}], "134"),
        ([{"exclude": [{"host_aggregates": [{"name": "*"}]}]}], "34"),
        ([{"host_aggregates": [{"id": 1}]}, {"exclude": [{"compute_nodes": [{"name": "compute1"}]}]}], "2"),
    ],
)
def test_compute_rules_select_nodes(rules: list[dict[str, Any]], left: str) -> None:
    assert nodes_in_scope(*rules) == left


def volumes_in_scope(*rules: dict[str, Any]) -> set[str]:
    """Return the volumes in a scope, of three: one in a pool of the type fast, one elsewhere, one in the zone az2."""
    fast = make_pool("a@lvm#fast", volume_types=[make_volume_type("fast")])
    far = make_pool("c@lvm#far")
    far.storage_node.zone = ZONE
    far.storage_node.save_changes(["zone"])
    make_volume("quick", fast, uuid="aaaaaaaa-0000-4000-8000-000000000000")
    make_volume("slow", make_pool("b@lvm#slow"), project_id="blue")
    make_volume("distant", far)
    storage = apply_scope(ClusterSnapshot.load(), [{"compute": []}, {"storage": list(rules)}]).storage
    return {volume.name for volume in storage.volumes}


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ([], {"quick", "slow", "distant"}),
        ([{"availability_zones": [{"name": ZONE}]}], {"distant"}),
        ([{"availability_zones": [{"name": "*"}]}], {"quick", "slow", "distant"}),
        ([{"volume_types": [{"name": "fast"}]}], {"quick"}),
        ([{"volume_types": [{"name": "fast"}]}, {"availability_zones": [{"name": ZONE}]}], {"quick", "distant"}),
        ([{"volume_types": [{"name": "golden"}]}], set()),
        ([{"exclude": [{"storage_pools": [{"name": "b@lvm#slow"}]}]}], {"quick", "distant"}),
        ([{"exclude": [{"volumes": [{"uuid": "AAAAAAAA-0000-4000-8000-000000000000"}]}]}], {"slow", "distant"}),
        ([{"exclude": [{"projects": [{"uuid": "blue"}]}]}], {"quick", "distant"}),
    ],
)
def test_storage_rules_select_volumes(rules: list[dict[str, Any]], left: set[str]) -> None:
    assert volumes_in_scope(*rules) == left


def test_pending_servers_are_kept_in_every_scope_and_marked_if_excluded() -> None:
    make_node("compute1")
    make_server("blue", state="pending", project_id="blue")
    make_server("other", state="pending")
    scope = [{"compute": [{"availability_zones": [{"name": ZONE}]}, {"exclude": [{"projects": [{"uuid": "blue"}]}]}]}]
    waiting = apply_scope(ClusterSnapshot.load(), scope).waiting
    assert [(server.name, server.watcher_exclude) for server in waiting] == [("blue", True), ("other", False)]


def test_excluded_volumes_count_for_the_capacity_of_their_pool() -> None:
    make_volume("data", make_pool("a@lvm#one"), size=40, project_id="blue")
    scope = [{"compute": []}, {"storage": [{"exclude": [{"projects": [{"uuid": "blue"}]}]}]}]
    [pool] = apply_scope(ClusterSnapshot.load(), scope).storage.pools.values()
    assert (pool.volumes, pool.free_capacity_gb) == ([], 60)


def test_aggregate_is_selected_by_uuid() -> None:
    aggregate = make_aggregate(1, SSD, make_node("compute1"))
    make_node("compute2")
    scope = [{"compute": [{"host_aggregates": [{"id": str(aggregate.uuid)}]}]}]
    check_scope(scope)
    assert list(apply_scope(ClusterSnapshot.load(), scope).nodes) == ["compute1"]
