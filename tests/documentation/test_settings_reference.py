"""The tables of docs/configuration.md agree with the defaults, limits and units of the settings."""

import os
import re

import pytest

from audits.engine.purge import CLAIM_PERIOD
from tests.documentation.settings_reference import (
    PAGE,
    ROW,
    all_variables,
    describe_default,
    read_variables,
    with_values,
)
from tests.processes import Process
from tests.waiting import PATIENCE
from watcher_site.configuration import policies

TEXT = PAGE.read_text()
DEFAULTS = {name: default for name, default, _, _ in ROW.findall(TEXT)}
# The defaults that depend on the machine, or are too long for a table.
DESCRIBED = {
    "DATABASE_URL": "an SQLite file in `.data/`",
    "WATCHER_HOST": "the host name of the machine",
    "WATCHER_ACTION_TYPES": "the built-in ones",
    "WATCHER_POLICY_TYPES": "the built-in ones",
    "WATCHER_SCORING_ENGINES": "the built-in ones",
    "WATCHER_STRATEGIES": "the built-in ones",
}
# The defaults that replace a missing variable after it was read.
EFFECTIVE = {"WATCHER_POLICIES": policies.DEFAULTS}
# These depend on another variable.
CONDITIONAL = {"WATCHER_TRUSTED_PROXIES", "WATCHER_KEYSTONE_SSO_URL"}
URL = "https://keystone.example.org/v3"


def documented_value(name: str) -> str:
    """Return the first quoted value of the documented default, or an empty string."""
    found = re.match(r"`([^`]*)`", DEFAULTS[name])
    return found[1] if found else ""


@pytest.mark.parametrize("name", sorted(DEFAULTS.keys() - DESCRIBED.keys() - CONDITIONAL))
def test_documented_default_is_that_of_the_settings(name: str) -> None:
    assert documented_value(name) == describe_default(EFFECTIVE.get(name, all_variables()[name]["default"]))


def test_documented_defaults_of_the_machine_are_described() -> None:
    assert {name: DEFAULTS[name] for name in DESCRIBED} == DESCRIBED


def test_documented_values_and_limits_are_those_of_the_settings() -> None:
    assert with_values(TEXT) == TEXT, "Run `python -m tests.documentation.settings_reference`."


def test_documented_interval_of_purges_names_the_interval_of_checks() -> None:
    descriptions = {name: description for name, _, _, description in ROW.findall(TEXT)}
    assert f"every {CLAIM_PERIOD} seconds" in descriptions["WATCHER_PURGE_INTERVAL"]


@pytest.mark.parametrize(
    ("name", "condition", "default", "documented"),
    [
        ("WATCHER_HTTPS", {"DEBUG": "true"}, "false", "`true`; with `DEBUG`, `false`"),
        ("WATCHER_LOG_FORMAT", {"DEBUG": "true"}, "console", "`json`; with `DEBUG` and in `make run`, `console`"),
        (
            "WATCHER_TRUSTED_PROXIES",
            {"WATCHER_BEHIND_PROXY": "true"},
            "127.0.0.1,::1",
            "with `WATCHER_BEHIND_PROXY`: `127.0.0.1,::1`; otherwise none",
        ),
        ("WATCHER_KEYSTONE_SSO_URL", {"WATCHER_KEYSTONE_URL": URL}, URL, "`WATCHER_KEYSTONE_URL`"),
    ],
)
def test_documented_conditional_default_is_that_of_the_settings(
    name: str, condition: dict[str, str], default: str, documented: str
) -> None:
    assert DEFAULTS[name] == documented
    assert describe_default(read_variables(**condition)[name]["default"]) == default


def test_no_variable_but_the_secret_key_is_required() -> None:
    # Without a key, the site would use the one that `make run` stored in this checkout.
    environment = {"PATH": os.environ["PATH"], "SECRET_KEY": "short"}
    ended = Process("-c", "import watcher_site.settings", env=environment)
    _, errors = ended.communicate(PATIENCE)
    assert "SECRET_KEY: must be set" in errors
    assert read_variables()
