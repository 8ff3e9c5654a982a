"""The system check of what action types answer."""

import pytest
from pytest_django import Settings

from actions.checks import check_affected_resources, check_outcomes
from actions.types.base import ActionType
from actions.types.nop import Nop


def answer(self: ActionType) -> bool:
    return True


class OfEarlierVersions(Nop):
    execute = answer  # type: ignore[assignment]


def test_an_action_type_that_declares_to_answer_with_a_bool_is_an_error_and_named(settings: Settings) -> None:
    settings.ACTION_TYPES = ["actions.types.nop.Nop", f"{__name__}.OfEarlierVersions"]
    (problem,) = check_outcomes()
    assert problem.msg == (
        f"ACTION_TYPES: execute of {__name__}.OfEarlierVersions returns a bool, and must return an Outcome."
    )


@pytest.mark.parametrize("path", ["actions.types.nop.Nop", "no.such.module.Thing", "builtins.dict"])
def test_what_declares_nothing_of_the_kind_is_none(settings: Settings, path: str) -> None:
    settings.ACTION_TYPES = [path]
    assert check_outcomes() == []


class NamingHosts(Nop):
    def compute_nodes(self) -> list[str]:
        return []


def test_an_action_type_with_a_method_that_affected_replaced_is_an_error_and_named(settings: Settings) -> None:
    settings.ACTION_TYPES = ["actions.types.nop.Nop", f"{__name__}.NamingHosts"]
    (problem,) = check_affected_resources()
    assert problem.msg == (
        f"ACTION_TYPES: {__name__}.NamingHosts defines compute_nodes, which nothing calls: affected replaces it."
    )
