"""Planners of strategies: stabilization, consolidation, and the explicit planner."""

import pytest

from audits.planner import PLANNERS, plan_consolidation, plan_explicitly, plan_stabilization
from audits.strategies.base import Solution, SolutionAction
from tests.audits.test_planner import named
from watcher_site.refusals import Invalid


def action(kind: str, name: str, **parameters: str) -> SolutionAction:
    return SolutionAction(kind, {"name": name, **parameters})


def test_stabilization_plan_runs_in_parallel_except_a_resize_after_the_migration_of_its_server() -> None:
    plan = plan_stabilization(
        [
            action("resize", "r1", resource_id="a"),
            action("migrate", "m1", resource_id="a"),
            action("migrate", "m2", resource_id="b"),
            action("nop", "n"),
        ]
    )
    assert [found.input_parameters["name"] for found in plan] == ["n", "m1", "m2", "r1"]
    assert named(plan) == {"n": set(), "m1": set(), "m2": set(), "r1": {"m1"}}


def test_consolidation_plan_disables_nodes_then_migrates_sequentially_then_enables() -> None:
    plan = plan_consolidation(
        [
            action("change_nova_service_state", "close1", state="disabled"),
            action("change_nova_service_state", "close2", state="disabled"),
            action("migrate", "a1", source_node="a"),
            action("migrate", "a2", source_node="a"),
            action("migrate", "b1", source_node="b"),
            action("change_nova_service_state", "open", state="enabled"),
        ]
    )
    closed = {"close1", "close2"}
    assert named(plan) == {
        "close1": set(),
        "close2": set(),
        "a1": closed,
        "a2": {*closed, "a1"},
        "b1": closed,
        "open": {"a2", "b1"},
    }


def test_explicit_plan_uses_the_dependencies_of_the_strategy() -> None:
    first, second = action("migrate", "m"), action("delete_server", "d")
    plan = plan_explicitly([first, second, SolutionAction("rebuild", {"name": "r"}, after=[0, 1])])
    assert named(plan) == {"m": set(), "d": set(), "r": {"m", "d"}}


@pytest.mark.parametrize("planner", ["workload_stabilization", "node_resource_consolidation"])
def test_action_type_unknown_to_the_planner_is_refused_with_its_name(planner: str) -> None:
    with pytest.raises(Invalid, match="Action type volume_migrate cannot be planned"):
        PLANNERS[planner]([action("volume_migrate", "v")])


@pytest.mark.parametrize("planner", PLANNERS)
def test_every_planner_keeps_the_name_and_the_timeout_of_an_action(planner: str) -> None:
    solution = Solution()
    parameters = {"source_node": "a"}
    solution.add("migrate", parameters, resource_id="x", name="away from a", timeout=60)
    (planned,) = PLANNERS[planner](solution.actions)
    assert (planned.name, planned.timeout) == ("away from a", 60)
