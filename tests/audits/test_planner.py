"""The weight planner: action types by weight, in chunks that depend on each other."""

from collections.abc import Sequence
from itertools import groupby

import pytest
from django.conf import settings
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from actions.graph.proposals import ProposedAction, check_graph
from audits.planner import plan_by_weight
from audits.strategies.base import SolutionAction
from watcher_site import plugins
from watcher_site.refusals import Invalid

TYPES = ["nop", "sleep", "migrate", "change_nova_service_state", "stop", "resize", "volume_migrate"]
solutions = st.lists(st.sampled_from(TYPES), max_size=40).map(
    lambda types: [SolutionAction(action_type, {"message": position}) for position, action_type in enumerate(types)]
)


def named(plan: Sequence[ProposedAction]) -> dict[str, set[str]]:
    """Return the parents of each action, by the names in their parameters."""
    names = {action.uuid: action.input_parameters["name"] for action in plan}
    return {names[action.uuid]: {names[parent] for parent in action.parents} for action in plan}


def test_migrations_in_pairs_follow_the_change_of_the_service_state() -> None:
    solution = [SolutionAction("migrate", {"name": f"m{number}"}) for number in range(1, 6)]
    solution.append(SolutionAction("change_nova_service_state", {"name": "c"}))
    assert named(plan_by_weight(solution)) == {
        "c": set(),
        "m1": {"c"},
        "m2": {"c"},
        "m3": {"m1", "m2"},
        "m4": {"m1", "m2"},
        "m5": {"m3", "m4"},
    }


def test_action_type_without_a_weight_is_refused_with_its_name() -> None:
    with pytest.raises(Invalid, match="Action type juggle has no weight"):
        plan_by_weight([SolutionAction("juggle", {})])


@pytest.mark.parametrize("table", ["PLANNER_WEIGHTS", "PLANNER_PARALLELIZATION"])
def test_planner_settings_contain_every_built_in_action_type(table: str) -> None:
    assert set(plugins.load("ACTION_TYPES")) - set(getattr(settings, table)) == set()


@override_settings(PLANNER_WEIGHTS={"nop": 1, "sleep": 2}, PLANNER_PARALLELIZATION={"nop": 3})
def test_weights_and_parallelization_are_settings() -> None:
    solution = [SolutionAction("nop", {"name": name}) for name in "abc"] + [SolutionAction("sleep", {"name": "s"})]
    assert named(plan_by_weight(solution)) == {"s": set(), "a": {"s"}, "b": {"s"}, "c": {"s"}}


@given(solutions)
def test_plan_contains_every_action_of_the_solution_once(solution: list[SolutionAction]) -> None:
    planned = [action.input_parameters["message"] for action in plan_by_weight(solution)]
    assert sorted(planned) == list(range(len(solution)))


@given(solutions)
def test_plan_is_a_valid_graph(solution: list[SolutionAction]) -> None:
    check_graph(plan_by_weight(solution))


@given(solutions)
def test_every_chunk_depends_on_all_actions_of_the_previous_chunk(solution: list[SolutionAction]) -> None:
    plan = plan_by_weight(solution)
    chunks = [list(chunk) for _, chunk in groupby(plan, key=lambda action: tuple(action.parents))]
    waits_for = [set(chunk[0].parents) for chunk in chunks]
    assert waits_for == [set(), *({action.uuid for action in chunk} for chunk in chunks[:-1])][: len(chunks)]


@given(solutions)
def test_chunk_size_does_not_exceed_the_parallelization(solution: list[SolutionAction]) -> None:
    plan = plan_by_weight(solution)
    sizes = [
        (key[1], len(list(chunk)))
        for key, chunk in groupby(plan, key=lambda action: (tuple(action.parents), action.action_type))
    ]
    alone = {"nop", "sleep", "change_nova_service_state"}
    assert all(size <= (1 if action_type in alone else 2) for action_type, size in sizes)
