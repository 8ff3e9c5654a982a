"""System checks of action types: the return type of execute, and methods that are no longer called."""

import pytest
from pytest_django import Settings

from actions.checks import check_affected_resources, check_outcomes
from actions.types.base import ActionType
from actions.types.nop import Nop


def answer(self: ActionType) -> bool:
    return True


class OfEarlierVersions(Nop):
    execute = answer  # type: ignore[assignment]


def test_execute_that_is_annotated_with_bool_is_an_error(settings: Settings) -> None:
    settings.ACTION_TYPES = ["actions.types.nop.Nop", f"{__name__}.OfEarlierVersions"]
    (problem,) = check_outcomes()
    assert problem.msg == (
        f"ACTION_TYPES: execute of {__name__}.OfEarlierVersions returns a bool, and must return an Outcome."
    )


@pytest.mark.parametrize("path", ["actions.types.nop.Nop", "no.such.module.Thing", "builtins.dict"])
def test_class_without_an_annotation_of_bool_is_no_error(settings: Settings, path: str) -> None:
    settings.ACTION_TYPES = [path]
    assert check_outcomes() == []


class NamingHosts(Nop):
    def compute_nodes(self) -> list[str]:
        return []


def test_method_that_affected_replaced_is_an_error(settings: Settings) -> None:
    settings.ACTION_TYPES = ["actions.types.nop.Nop", f"{__name__}.NamingHosts"]
    (problem,) = check_affected_resources()
    assert problem.msg == (
        f"ACTION_TYPES: {__name__}.NamingHosts defines compute_nodes, which nothing calls: affected replaces it."
    )
