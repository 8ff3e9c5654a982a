"""The three test suites of Watcher's clients, and the expected outcomes of each."""

import json
import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

from tests.conformance.identity import DOMAIN, PROJECT, REGION, Account
from tests.conformance.run_tests import FAILURE, SKIP, SUCCESS
from tests.waiting import wait_for

RUNNER, CLIENT = (Path(__file__).with_name(name) for name in ("run_tests.py", "warm_client.py"))
# In seconds. A suite that hangs ends here.
LONGEST = 3600


@dataclass(frozen=True)
class Suite:
    """A package of tests: their number, and the tests that do not pass, by the end of their ids.

    Tests that the suite itself skips (``skipped``) are not counted; both mappings contain the reasons.
    """

    key: str
    name: str
    package: str
    tests: int
    failures: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)


SUITES = [
    Suite(
        "api",
        "watcher-tempest-plugin, API tests",
        "watcher_tempest_plugin.tests.api.admin",
        60,
        skipped={"TestShowListAudit.test_list_with_limit": "because of Watcher's bug 2134046"},
    ),
    Suite(
        "client",
        "watcher-tempest-plugin, client tests",
        "watcher_tempest_plugin.tests.client_functional",
        41,
    ),
    Suite(
        "watcherclient",
        "python-watcherclient, functional tests",
        "watcherclient.tests.client_functional",
        50,
        failures={
            "ActionUpdateTests.test_action_update_with_state_only": (
                "it skips an action that is SKIPPED already and expects 200; here that is 409, which keeps the reason"
            )
        },
    ),
]


@dataclass(frozen=True)
class Result:
    """The outcome of each test of a suite by its id."""

    suite: Suite
    outcomes: Mapping[str, str]

    def line(self) -> str:
        passed = sum(outcome == SUCCESS for outcome in self.outcomes.values())
        return f"{self.suite.name}: {passed}/{self.suite.tests} passed"

    def problems(self) -> list[str]:
        """Return the unexpected results: the number of tests, and outcomes, including an unexpected success."""
        outcomes = {test: self.expected(test) for test in self.outcomes}
        counted = sum(outcome != SKIP for outcome, _ in outcomes.values())
        found = [] if counted == self.suite.tests else [f"{counted} tests ran, expected {self.suite.tests}"]
        for test, (outcome, _) in outcomes.items():
            if self.outcomes[test] != outcome:
                found.append(f"{test}: {self.outcomes[test]}, expected {outcome}")
        return found

    def exceptions(self) -> list[str]:
        """Return the tests that are expected not to pass, with the reasons."""
        expected = {test: self.expected(test) for test in self.outcomes}
        return [f"{test}: {outcome}, as expected: {reason}" for test, (outcome, reason) in expected.items() if reason]

    def expected(self, test: str) -> tuple[str, str]:
        """Return the expected outcome of a test, and the reason if it is no success."""
        for outcome, tests in ((FAILURE, self.suite.failures), (SKIP, self.suite.skipped)):
            for name, reason in tests.items():
                if test.partition("[")[0].endswith(name):
                    return outcome, reason
        return SUCCESS, ""


def run(suite: Suite, python: Path, identity: str, account: Account, folder: Path) -> Result:
    """Run a suite with the Python of its environment against a site; it writes its files into ``folder``."""
    configuration, outcomes = folder / "tempest.conf", folder / "outcomes.json"
    configuration.write_text(tempest_configuration(identity, account, folder))
    variables = environment(configuration, identity, account)
    with (folder / "tests.log").open("wb") as log, warm_client(python, folder, variables) as programs:
        subprocess.run(
            [python, RUNNER, suite.package, outcomes],
            cwd=folder,
            env=variables | {"PATH": f"{programs}{os.pathsep}{variables['PATH']}"},
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=LONGEST,
            check=True,
        )
    return Result(suite, json.loads(outcomes.read_text()))


@contextmanager
def warm_client(python: Path, folder: Path, variables: Mapping[str, str]) -> Iterator[Path]:
    """Serve the ``openstack`` command, and yield a folder with the command, for the beginning of the PATH."""
    programs, path = folder / "bin", folder / "client.socket"
    programs.mkdir()
    command = programs / "openstack"
    words = shlex.join([str(python), "-IS", str(CLIENT), "run", str(path)])
    command.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    command.chmod(0o755)
    server = subprocess.Popen([python, CLIENT, "serve", path], cwd=folder, env=dict(variables))
    try:
        wait_for(lambda: path.exists() or server.poll() is not None)
        yield programs
    finally:
        server.terminate()
        server.wait()


def environment(configuration: Path, identity: str, account: Account) -> dict[str, str]:
    """Return the environment of a suite; times without a zone are UTC, as for the site."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "WATCHER_", "TEMPEST_"))}
    return {
        **kept,
        "OS_AUTH_URL": identity,
        "OS_USERNAME": account.name,
        "OS_PASSWORD": account.password,
        "OS_PROJECT_NAME": PROJECT,
        "OS_PROJECT_DOMAIN_ID": DOMAIN["name"],
        "OS_USER_DOMAIN_ID": DOMAIN["name"],
        "PYTHONWARNINGS": "ignore",
        "TEMPEST_CONFIG": configuration.name,
        "TEMPEST_CONFIG_DIR": str(configuration.parent),
        "TZ": "UTC",
    }


def tempest_configuration(identity: str, account: Account, folder: Path) -> str:
    return dedent(f"""\
        [DEFAULT]
        log_dir = {folder}
        log_file = tempest.log
        [oslo_concurrency]
        lock_path = {folder}
        [auth]
        use_dynamic_credentials = false
        admin_username = {account.name}
        admin_password = {account.password}
        admin_project_name = {PROJECT}
        admin_domain_name = {DOMAIN["name"]}
        [identity]
        auth_version = v3
        uri_v3 = {identity}
        region = {REGION}
        [service_available]
        watcher = true
        [optimize]
        datasource =
        max_microversion = 1.7
        """)
