"""The system check of strategies: their goals and planners."""

from typing import Any

from audits.checks import check_strategies
from audits.strategies.dummy import Dummy


class UnknownGoal(Dummy):
    goal = "nowhere"


class UnknownPlanner(Dummy):
    planner = "chance"


def report(settings: Any, strategy: str) -> list[str]:
    settings.STRATEGIES = [f"tests.audits.test_checks.{strategy}"]
    return [str(problem.msg) for problem in check_strategies()]


def test_built_in_strategies_pass_the_check() -> None:
    assert check_strategies() == []


def test_unknown_goal_is_reported(settings: Any) -> None:
    assert report(settings, "UnknownGoal") == ["WATCHER_STRATEGIES: dummy names the goal nowhere, which is not there."]


def test_unknown_planner_is_reported(settings: Any) -> None:
    assert report(settings, "UnknownPlanner") == [
        "WATCHER_STRATEGIES: dummy names the planner chance, which is not there."
    ]


def test_strategy_that_cannot_be_loaded_is_not_reported_by_this_check(settings: Any) -> None:
    assert report(settings, "Missing") == []
