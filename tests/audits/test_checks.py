"""A strategy without its goal or planner is reported before anything starts."""

from typing import Any

from audits.checks import check_strategies
from audits.strategies.dummy import Dummy


class Homeless(Dummy):
    goal = "nowhere"


class Aimless(Dummy):
    planner = "chance"


def report(settings: Any, strategy: str) -> list[str]:
    settings.STRATEGIES = [f"tests.audits.test_checks.{strategy}"]
    return [str(problem.msg) for problem in check_strategies()]


def test_the_built_in_strategies_are_sound() -> None:
    assert check_strategies() == []


def test_a_goal_that_is_not_there_is_reported(settings: Any) -> None:
    assert report(settings, "Homeless") == ["WATCHER_STRATEGIES: dummy names the goal nowhere, which is not there."]


def test_a_planner_that_is_not_there_is_reported(settings: Any) -> None:
    assert report(settings, "Aimless") == ["WATCHER_STRATEGIES: dummy names the planner chance, which is not there."]


def test_a_strategy_that_cannot_be_loaded_is_left_to_the_check_of_all_plug_ins(settings: Any) -> None:
    assert report(settings, "Missing") == []
