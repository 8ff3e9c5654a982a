"""The strategy ``make_room``: the servers that get capacity, the actions, and their order."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from audits.strategies.base import Solution, SolutionAction
from cluster.snapshot import ClusterSnapshot, NodeSnapshot, ServerSnapshot
from tests.audits.clusters import cluster, listed, moves, node, server, solve

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
DELETABLE = {"preemptible": "delete"}


def pending_server(name: str, vcpus: int, **attributes: Any) -> ServerSnapshot:
    return server(name, state="pending", vcpus=vcpus, **{"waiting_since": EPOCH, **attributes})


def make_room(*nodes: NodeSnapshot, waiting: list[ServerSnapshot]) -> Solution:
    return solve("make_room", cluster(*nodes, waiting=waiting))


def builds(solution: Solution) -> list[tuple[str, str]]:
    """Return the servers that are built and their nodes, in the order of the plan."""
    return [
        (found["resource_name"], found["destination_node"]) for kind, found in listed(solution) if kind == "rebuild"
    ]


def named(solution: Solution, action_type: str) -> list[str]:
    return [found["resource_name"] for kind, found in listed(solution) if kind == action_type]


def parents(solution: Solution, name: str) -> set[str]:
    [found] = [one for one in solution.actions if one.input_parameters["resource_name"] == name]
    return {solution.actions[place].input_parameters["resource_name"] for place in found.after}


def test_server_is_built_on_the_fullest_node_with_capacity() -> None:
    nodes = [node("roomy"), node("tight", server("big", vcpus=12, memory=16384))]
    waiting = pending_server("w", 4)
    solution = make_room(*nodes, waiting=[waiting])
    assert listed(solution) == [
        (
            "rebuild",
            {
                "resource_id": str(waiting.uuid),
                "resource_name": "w",
                "expected_status": "PENDING",
                "destination_node": "tight",
            },
        )
    ]


def test_server_is_migrated_to_free_capacity_for_a_pending_server() -> None:
    nodes = [node("a", server("a1", vcpus=10), server("a2", vcpus=3)), node("b", server("b1", vcpus=12))]
    waiting = pending_server("w", 6)
    solution = make_room(*nodes, waiting=[waiting])
    assert moves(solution) == [("a2", "a", "b")]
    assert (builds(solution), parents(solution, "w")) == ([("w", "a")], {"a2"})
    assert solution.actions[0].input_parameters["needed_for"] == [str(waiting.uuid)]


def test_fewest_and_smallest_sufficient_servers_are_migrated() -> None:
    many = node("many", *(server(f"m{number}", vcpus=2) for number in range(8)))
    few = node("few", server("small", vcpus=1), server("just", vcpus=6), server("large", vcpus=9))
    free = node("free", server("full of memory", vcpus=6, memory=28000, state="stopped"))
    solution = make_room(many, few, free, waiting=[pending_server("w", 6, memory=8192)])
    assert (moves(solution), builds(solution)) == ([("just", "few", "free")], [("w", "few")])


@pytest.mark.parametrize("waited", [timedelta(0), timedelta(seconds=59)])
def test_server_is_not_reset_to_error_before_the_pending_timeout(settings: Settings, waited: timedelta) -> None:
    settings.PENDING_TIMEOUT = timedelta(minutes=1)
    solution = make_room(node("a"), waiting=[pending_server("w", 64, waiting_since=timezone.now() - waited)])
    assert listed(solution) == []


def test_server_is_reset_to_error_after_the_pending_timeout(settings: Settings) -> None:
    settings.PENDING_TIMEOUT = timedelta(minutes=1)
    solution = make_room(
        node("a"), waiting=[pending_server("w", 64, waiting_since=timezone.now() - timedelta(minutes=1))]
    )
    assert named(solution, "reset_state") == ["w"]


def test_server_is_not_reset_to_error_without_a_pending_timeout(settings: Settings) -> None:
    settings.PENDING_TIMEOUT = timedelta(0)
    assert listed(make_room(node("a"), waiting=[pending_server("w", 64)])) == []


def test_server_with_less_memory_is_migrated() -> None:
    nodes = [node("a", server("large", memory=20000)), node("b", server("small", memory=9000))]
    solution = make_room(*nodes, waiting=[pending_server("w", 2, memory=30000)])
    assert (moves(solution), builds(solution)) == ([("small", "b", "a")], [("w", "b")])


@pytest.mark.parametrize(
    "attributes", [{"state": "stopped"}, {"state": "paused"}, {"watcher_exclude": True}, {"pinned_az": "nova"}]
)
def test_inactive_excluded_and_pinned_servers_are_not_migrated(attributes: dict[str, Any]) -> None:
    nodes = [node("a", server("a1", vcpus=16, **attributes)), node("b", zone="elsewhere")]
    solution = make_room(*nodes, waiting=[pending_server("w", 4, pinned_az="nova")])
    assert (moves(solution), named(solution, "reset_state")) == ([], ["w"])


@pytest.mark.parametrize("closed", [{"status": "disabled"}, {"state": "down"}, {"power_state": "off"}])
def test_disabled_or_down_node_is_no_destination(closed: dict[str, str]) -> None:
    nodes = [node("a", server("a1", vcpus=16)), node("b", **closed)]
    solution = make_room(*nodes, waiting=[pending_server("w", 4)])
    assert (moves(solution), builds(solution), named(solution, "reset_state")) == ([], [], ["w"])


def test_server_is_built_in_its_pinned_zone() -> None:
    solution = make_room(node("a"), node("b", zone="az1"), waiting=[pending_server("w", 4, pinned_az="az1")])
    assert builds(solution) == [("w", "b")]


def test_capacity_is_given_to_the_longest_pending_server_first() -> None:
    nodes = [node("a", server("a1", vcpus=4)), node("b", server("b1", vcpus=12))]
    solution = make_room(*nodes, waiting=[pending_server("large", 16), pending_server("small", 2)])
    assert moves(solution) == [("a1", "a", "b")]
    assert (builds(solution), named(solution, "reset_state")) == ([("large", "a")], ["small"])


def test_server_without_possible_capacity_is_reset_with_the_reason_and_others_are_built() -> None:
    solution = make_room(node("a"), waiting=[pending_server("huge", 64, pinned_az="nova"), pending_server("small", 2)])
    assert builds(solution) == [("small", "a")]
    [(_, inputs)] = [found for found in listed(solution) if found[0] == "reset_state"]
    assert (inputs["state"], inputs["expected_status"]) == ("error", "PENDING")
    assert inputs["reason"] == (
        "No capacity can be provided for 64 VCPUs, 2048 MB of memory and 20 GB of disk in availability zone nova."
    )


def test_migrated_server_may_displace_another_server() -> None:
    nodes = [
        node("a", server("a1", vcpus=5, pinned_az="az1"), vcpus=8, zone="az1"),
        node("b", server("b1", vcpus=4), vcpus=6, zone="az1"),
        node("c", vcpus=4),
    ]
    solution = make_room(*nodes, waiting=[pending_server("w", 8)])
    assert moves(solution) == [("b1", "b", "c"), ("a1", "a", "b")]
    assert (parents(solution, "a1"), parents(solution, "w")) == ({"b1"}, {"a1"})
    assert all(len(action.input_parameters["needed_for"]) == 1 for action in solution.actions[:2])


def test_preemptible_server_is_deleted_if_migrations_do_not_suffice() -> None:
    nodes = [node("a", server("kept", vcpus=8), server("spot", vcpus=8, metadata=DELETABLE))]
    solution = make_room(*nodes, waiting=[pending_server("w", 6)])
    assert (named(solution, "delete_server"), parents(solution, "w")) == (["spot"], {"spot"})
    assert solution.indicators == {
        "waiting_servers_count": 1,
        "served_servers_count": 1,
        "instance_migrations_count": 0,
        "deleted_servers_count": 1,
    }


def test_preemptible_server_is_migrated_if_that_suffices() -> None:
    spot, rest = server("spot", vcpus=6, metadata=DELETABLE), server("rest", vcpus=10)
    free = node("free", server("full of memory", vcpus=6, memory=28000, state="stopped"))
    solution = make_room(node("a", spot, rest), free, waiting=[pending_server("w", 6, memory=8192)])
    assert (moves(solution), named(solution, "delete_server")) == ([("spot", "a", "free")], [])


@pytest.mark.parametrize(
    "attributes",
    [{"metadata": {"preemptible": "stop"}}, {"metadata": {}}, {"locked": True}, {"watcher_exclude": True}],
)
def test_servers_not_marked_preemptible_locked_or_excluded_are_not_deleted(attributes: dict[str, Any]) -> None:
    nodes = [node("a", server("kept", **{"vcpus": 16, "metadata": DELETABLE, **attributes}))]
    solution = make_room(*nodes, waiting=[pending_server("w", 6)])
    assert (named(solution, "delete_server"), named(solution, "reset_state")) == ([], ["w"])


def test_fewest_preemptible_servers_are_deleted() -> None:
    spots = [server(f"spot{vcpus}", vcpus=vcpus, metadata=DELETABLE) for vcpus in (1, 2, 4, 9)]
    solution = make_room(node("a", *spots), waiting=[pending_server("w", 4)])
    assert named(solution, "delete_server") == ["spot4"]


def test_pending_preemptible_server_is_not_deleted_for_another() -> None:
    waiting = [pending_server("first", 16, metadata=DELETABLE), pending_server("second", 16)]
    solution = make_room(node("a"), waiting=waiting)
    assert (builds(solution), named(solution, "reset_state")) == ([("first", "a")], ["second"])


def test_pending_server_excluded_by_the_scope_is_ignored() -> None:
    solution = make_room(node("a"), waiting=[pending_server("w", 2, watcher_exclude=True)])
    assert (solution.actions, solution.indicators["waiting_servers_count"]) == ([], 0)


def test_migration_lists_all_pending_servers_that_it_is_needed_for() -> None:
    nodes = [node("a", server("a1", vcpus=12)), node("b", server("b1", vcpus=4, state="stopped"))]
    first, second = pending_server("first", 13), pending_server("second", 2)
    solution = make_room(*nodes, waiting=[first, second])
    assert builds(solution) == [("first", "a"), ("second", "a")]
    assert solution.actions[0].input_parameters["needed_for"] == [str(first.uuid), str(second.uuid)]


# Properties for random clusters


@st.composite
def crowded(draw: st.DrawFn) -> ClusterSnapshot:
    nodes = []
    for number in range(draw(st.integers(1, 5))):
        servers = [
            server(
                f"s{number}-{position}",
                vcpus=draw(st.integers(1, 6)),
                memory=draw(st.sampled_from([1024, 8000])),
                state=draw(st.sampled_from(["active", "active", "active", "stopped"])),
                metadata=draw(st.sampled_from([{}, {}, DELETABLE])),
                pinned_az=draw(st.sampled_from(["", "", "nova"])),
            )
            for position in range(draw(st.integers(0, 5)))
        ]
        status = draw(st.sampled_from(["enabled", "enabled", "disabled"]))
        zone = draw(st.sampled_from(["nova", "nova", "az1"]))
        nodes.append(node(f"n{number}", *servers, status=status, zone=zone))
    sizes = draw(st.lists(st.integers(1, 20), max_size=5))
    waiting = [pending_server(f"w{number}", vcpus, memory=512 * vcpus) for number, vcpus in enumerate(sizes)]
    return cluster(*nodes, waiting=waiting)


def carry_out(seen: ClusterSnapshot, action: SolutionAction) -> None:
    """Apply an action to a cluster in memory, or fail if the capacity is insufficient."""
    parameters = action.input_parameters
    where = {str(one.uuid): place for place in seen.nodes.values() for one in place.servers}
    servers = {str(one.uuid): one for one in [*seen.servers, *seen.waiting]}
    moved = servers[parameters["resource_id"]]
    if source := where.get(parameters["resource_id"]):
        assert parameters.get("source_node", source.hostname) == source.hostname
        source.servers.remove(moved)
    if target := parameters.get("destination_node"):
        place = seen.nodes[target]
        assert place.is_enabled
        assert moved.pinned_az in {"", place.zone}
        assert moved.vcpus <= place.free_vcpus
        assert moved.memory <= place.free_memory
        place.servers.append(moved)


@given(seen=crowded(), chance=st.randoms(use_true_random=False))
def test_every_order_of_independent_actions_has_sufficient_capacity(seen: ClusterSnapshot, chance: Any) -> None:
    solution = solve("make_room", seen)
    served = named(solution, "rebuild") + named(solution, "reset_state")
    assert sorted(served) == sorted(one.name for one in seen.waiting)
    done: set[int] = set()
    while len(done) < len(solution.actions):
        ready = [
            place
            for place, action in enumerate(solution.actions)
            if place not in done and done.issuperset(action.after)
        ]
        place = chance.choice(ready)
        done.add(place)
        if solution.actions[place].action_type != "reset_state":
            carry_out(seen, solution.actions[place])


@given(seen=crowded())
def test_every_migration_and_deletion_is_needed_for_a_built_server(seen: ClusterSnapshot) -> None:
    solution = solve("make_room", seen)
    built = {one["resource_id"] for kind, one in listed(solution) if kind == "rebuild"}
    needs = [one["needed_for"] for kind, one in listed(solution) if kind in {"migrate", "delete_server"}]
    assert all(need and built.issuperset(need) for need in needs)
