"""System checks report invalid plug-ins and settings."""

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from actions.types.base import ActionType
from actions.types.nop import Nop
from tests.processes import ROOT
from watcher_site.checks import (
    FORMER_VARIABLES,
    check_former_variables,
    check_lease,
    check_plan_approval,
    check_plugins,
)


class Nameless(Nop):
    name = ""


class OtherNop(Nop):
    """A type with the name of another type."""


class Unfinished(ActionType):
    name = "unfinished"


NOP = "actions.types.nop.Nop"
HERE = __name__


def ids() -> list[str | None]:
    return [problem.id for problem in check_plugins()]


def test_default_settings_have_no_problems() -> None:
    assert [problem for problem in run_checks() if problem.is_serious()] == []


@pytest.mark.parametrize("setting", ["ACTION_TYPES", "STRATEGIES"])
@pytest.mark.parametrize("path", ["no.such.module.Thing", "actions.types.nop.Missing", "nonsense", ""])
def test_unknown_plug_in_path_is_an_error(settings: Settings, setting: str, path: str) -> None:
    setattr(settings, setting, [path])
    assert ids() == ["watcher_site.E001"]


def test_error_names_the_setting_and_the_path(settings: Settings) -> None:
    settings.CLOUD = "no.such.Cloud"
    (problem,) = check_plugins()
    assert problem.msg.startswith("WATCHER_CLOUD: no.such.Cloud cannot be loaded: ")


@pytest.mark.parametrize("path", ["builtins.dict", "os.path.join", "audits.strategies.dummy.Dummy"])
def test_plug_in_of_another_class_is_an_error(settings: Settings, path: str) -> None:
    settings.ACTION_TYPES = [path]
    assert ids() == ["watcher_site.E002"]


def test_plug_in_without_a_required_method_is_an_error(settings: Settings) -> None:
    settings.ACTION_TYPES = [f"{HERE}.Unfinished"]
    (problem,) = check_plugins()
    assert (problem.id, "execute" in problem.msg) == ("watcher_site.E003", True)


def test_plug_in_without_a_name_is_an_error(settings: Settings) -> None:
    settings.ACTION_TYPES = [f"{HERE}.Nameless"]
    assert ids() == ["watcher_site.E004"]


def test_plug_ins_with_the_same_name_are_errors(settings: Settings) -> None:
    settings.ACTION_TYPES = [NOP, f"{HERE}.OtherNop"]
    assert ids() == ["watcher_site.E005", "watcher_site.E005"]


def test_lease_shorter_than_the_poll_interval_is_a_warning(settings: Settings) -> None:
    settings.SERVICE_DOWN_TIME, settings.POLL_INTERVAL = 5, 6
    assert [problem.id for problem in check_lease()] == ["watcher_site.W001"]


@pytest.mark.parametrize(
    ("approval", "auto_trigger", "found"), [(True, True, ["watcher_site.W004"]), (True, False, []), (False, True, [])]
)
def test_required_approval_of_plans_that_start_automatically_is_a_warning(
    settings: Settings, approval: bool, auto_trigger: bool, found: list[str]
) -> None:
    settings.PLAN_APPROVAL, settings.MAKE_ROOM_AUTO_TRIGGER = approval, auto_trigger
    assert [problem.id for problem in check_plan_approval()] == found


@pytest.mark.parametrize("suffix", ["", "_FILE"])
@pytest.mark.parametrize("name", FORMER_VARIABLES)
def test_removed_variable_is_a_warning(monkeypatch: pytest.MonkeyPatch, name: str, suffix: str) -> None:
    monkeypatch.setenv(f"{name}{suffix}", "7")
    (problem,) = run_checks()
    assert (problem.id, problem.msg.split()[0]) == ("watcher_site.W002", name)


def test_unset_removed_variables_cause_no_warning() -> None:
    assert check_former_variables() == []


def test_removed_variables_are_not_read() -> None:
    configuration = (ROOT / "watcher_site").glob("*settings.py")
    read = {name for file in configuration for name in FORMER_VARIABLES if f'"{name}"' in file.read_text()}
    assert read == set()
