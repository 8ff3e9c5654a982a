"""The unmodified ``openstack optimize …`` commands and python-watcherclient, against a live server."""

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from keystoneauth1 import session
from keystoneauth1.http_basic import HTTPBasicAuth
from knox.models import AuthToken
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer
from watcherclient import exceptions

from audits.engine.engine import DecisionEngine
from audits.plugins import synchronize
from plans.applier.applier import Applier
from plans.executors import ThreadExecutor
from plans.models import EfficacyIndicator
from tests.builders import make_node, make_plan, make_server
from watcher_site.api import versions
from watcher_site.models import Service

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:osc_lib"),
]


class OpenStack:
    """The ``openstack optimize`` commands, run in this process to save the seconds of a start of the client."""

    def __init__(self, main: Callable[[list[str]], int], client: Any, capsys: pytest.CaptureFixture[str]) -> None:
        self.main, self.client, self.capsys = main, client, capsys

    def __call__(self, *arguments: str) -> Any:
        """Return the output of a command, parsed as JSON."""
        status, shown, errors = self.run(*arguments, "-f", "json")
        assert status == 0, errors
        return json.loads(shown)

    def quietly(self, *arguments: str) -> None:
        """Run a command that has no output."""
        status, shown, errors = self.run(*arguments)
        assert (status, shown.strip()) == (0, ""), errors

    def refused(self, *arguments: str) -> str:
        """Return the error text of a failed command."""
        status, shown, errors = self.run(*arguments)
        assert status != 0, shown
        assert "Traceback" not in errors
        return " ".join(errors.split())

    def run(self, *arguments: str) -> tuple[int, str, str]:
        self.capsys.readouterr()
        # The client manager caches one client for its process, which here runs many commands.
        self.client._handle = None
        options = [argument for argument in arguments if argument.startswith("--os-")]
        words = [argument for argument in arguments if argument not in options]
        status = self.main([*options, "optimize", *words])
        shown = self.capsys.readouterr()
        return status, shown.out, shown.err


@pytest.fixture
def log_handlers() -> Iterator[None]:
    """Let the client log to its own handlers only, and remove these.

    The client logs everything. A handler of an earlier test, whose standard error is closed, would print a traceback.
    """
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers.clear()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def site(live_server: LiveServer, cloud_admin: User) -> str:
    """The address of a site with two compute nodes and three servers."""
    synchronize()
    crowded = make_node("compute1")
    make_node("compute2")
    for name in ("db-1", "web-1", "web-2"):
        make_server(name, crowded)
    return live_server.url


@pytest.fixture
def openstack(
    site: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], log_handlers: None
) -> OpenStack:
    environment = {"AUTH_TYPE": "http_basic", "USERNAME": "alice", "PASSWORD": "alice-password", "ENDPOINT": site}
    for name, value in environment.items():
        monkeypatch.setenv(f"OS_{name}", value)
    # These imports take seconds, and the tests of other files do not need them.
    from openstackclient.shell import main
    from osc_lib.clientmanager import ClientManager

    return OpenStack(main, vars(ClientManager)["infra-optim"], capsys)


@pytest.fixture
def library(site: str) -> Any:
    return library_at(site, "1.7")


def library_at(site: str, version: str) -> Any:
    from watcherclient import client

    auth = HTTPBasicAuth(endpoint=site, username="alice", password="alice-password")
    return client.get_client("1", session=session.Session(auth=auth), os_infra_optim_api_version=version)


def decide() -> None:
    DecisionEngine().run(once=True)


def apply() -> None:
    Applier(ThreadExecutor(4)).run(once=True)


def test_openstack_command_authenticates_with_a_token(site: str, cloud_admin: User, tmp_path: Path) -> None:
    _, token = AuthToken.objects.create(cloud_admin)
    environment = {"OS_AUTH_TYPE": "admin_token", "OS_TOKEN": token, "OS_ENDPOINT": site}
    done = subprocess.run(
        ["openstack", "optimize", "goal", "show", "dummy", "-f", "json"],
        env={"HOME": str(tmp_path), "PATH": str(Path(sys.executable).parent), **environment},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["Name"] == "dummy"


def test_text_of_a_login_limit_is_shown(
    openstack: OpenStack, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MOST_FAILED_LOGINS = 1
    monkeypatch.setenv("OS_PASSWORD", "wrong")
    openstack.refused("goal", "list")
    assert "Too many failed logins from your address." in openstack.refused("goal", "list")


def test_library_pages_through_a_list(library: Any) -> None:
    plan = make_plan({str(number): [] for number in range(7)})
    whole = [found.uuid for found in library.action.list(action_plan=str(plan.uuid))]
    assert len(whole) == 7
    for limit in (2, 0):
        paged = [found.uuid for found in library.action.list(limit=limit, sort_key="uuid", detail=True)]
        assert paged == sorted(whole)[: limit or None]
    rest = [found.uuid for found in library.action.list(marker=whole[4])]
    assert rest == whole[5:]


def test_library_reads_plans_and_actions_at_the_oldest_version(site: str) -> None:
    library = library_at(site, "1.0")
    plan = make_plan({"a": []}, status_message="nobody sees it here")
    [shown] = library.action_plan.list(detail=True)
    assert (shown.uuid, hasattr(shown, "status_message")) == (str(plan.uuid), False)
    [found] = library.action.list(action_plan=shown.uuid, detail=True)
    with pytest.raises(exceptions.HTTPBadRequest, match=r"API microversion 1\.5 or higher is required"):
        library.action.update(found.uuid, [{"op": "replace", "path": "/state", "value": "SKIPPED"}])


def test_library_raises_the_errors_of_the_api(library: Any) -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    [found] = library.action.list(action_plan=str(plan.uuid))
    with pytest.raises(exceptions.Conflict, match="actionplan state: ONGOING"):
        library.action.update(found.uuid, [{"op": "replace", "path": "/state", "value": "SKIPPED"}])
    with pytest.raises(exceptions.HTTPBadRequest, match="Invalid sort key: foo"):
        library.action.list(sort_key="foo")
    with pytest.raises(exceptions.HTTPNotFound, match="Goal nope could not be found"):
        library.goal.get("nope")


def test_goals_and_strategies_are_listed_and_shown(openstack: OpenStack) -> None:
    goals = openstack("goal", "list", "--limit", "0")
    assert {"dummy", "cluster_maintaining"} <= {goal["Name"] for goal in goals}
    shown = openstack("goal", "show", "Server_Consolidation")
    assert {"name", "description", "unit", "schema"} == set(shown["Efficacy specification"][0])
    strategies = openstack("strategy", "list", "--goal", "cluster_maintaining", "--detail")
    assert [strategy["Name"] for strategy in strategies] == ["host_maintenance"]
    assert "maintenance_node" in str(openstack("strategy", "show", "host_maintenance"))
    needs = {row["Type"]: row["State"] for row in openstack("strategy", "state", "host_maintenance")}
    assert needs["Name"] == "host_maintenance"
    assert {"compute_model": "available"} in json.loads(needs["CDM"])


def test_error_of_an_unknown_object_is_shown(openstack: OpenStack) -> None:
    unknown = "11111111-1111-4111-8111-111111111111"
    assert "Goal nope could not be found (HTTP 404)" in openstack.refused("goal", "show", "nope")
    assert f"Action {unknown} could not be found" in openstack.refused("action", "show", unknown)
    assert f"ActionPlan {unknown} could not be found" in openstack.refused("actionplan", "show", unknown)
    assert "Audit nope could not be found" in openstack.refused("audit", "show", "nope")
    assert "Goal nope could not be found" in openstack.refused("audittemplate", "create", "t", "nope")


def test_audit_template_is_created_changed_and_deleted(openstack: OpenStack, tmp_path: Path) -> None:
    scope = tmp_path / "scope.json"
    scope.write_text('[{"compute": [{"availability_zones": [{"name": "nova"}]}]}]')
    made = openstack(
        *("audittemplate", "create", "upkeep", "cluster_maintaining", "-s", "host_maintenance"),
        *("-d", "before repairs", "--scope", str(scope), "--os-infra-optim-api-version=1.7"),
    )
    assert made["Name"] == "upkeep"
    assert made["Strategy"] == "host_maintenance"
    assert [row["Name"] for row in openstack("audittemplate", "list", "--goal", "cluster_maintaining")] == ["upkeep"]
    changed = openstack("audittemplate", "update", "upkeep", "replace", "description=after repairs")
    assert changed["Description"] == "after repairs"
    assert openstack("audittemplate", "show", made["UUID"])["Description"] == "after repairs"
    assert "already exists" in openstack.refused("audittemplate", "create", "upkeep", "cluster_maintaining")
    openstack.quietly("audittemplate", "delete", "upkeep")
    assert openstack("audittemplate", "list") == []


def test_audit_is_created_from_a_template_and_cancelled(openstack: OpenStack) -> None:
    openstack("audittemplate", "create", "practice", "dummy", "-s", "dummy")
    made = openstack("audit", "create", "-a", "practice", "-p", "para1=2", "--name", "first", "--force")
    assert made["State"] == "PENDING"
    assert made["Parameters"] == {"para1": 2, "para2": "hello"}
    assert made["Force"] is True
    assert openstack("audit", "update", "first", "replace", "state=CANCELLED")["State"] == "CANCELLED"
    openstack.quietly("audit", "delete", "first")
    assert openstack("audit", "list") == []


def test_error_of_an_invalid_audit_is_shown(openstack: OpenStack) -> None:
    assert "Audit parameter zz are not allowed" in openstack.refused(
        "audit", "create", "-g", "dummy", "-s", "dummy", "-p", "zz=1"
    )
    errors = openstack.refused("audit", "create", "-g", "dummy", "-s", "dummy", "-i", "60")
    assert "Interval of audit must not be set for ONESHOT" in errors


def test_plan_of_an_audit_is_reviewed_started_executed_and_deleted(openstack: OpenStack) -> None:
    audit = openstack(
        *("audit", "create", "-g", "cluster_maintaining", "-s", "host_maintenance"),
        *("-p", "maintenance_node=compute1", "-p", "backup_node=compute2"),
    )
    decide()
    assert openstack("audit", "show", audit["UUID"])["State"] == "SUCCEEDED"
    [plan] = openstack("actionplan", "list", "--audit", audit["UUID"])
    assert plan["State"] == "RECOMMENDED"

    actions = openstack("action", "list", "--action-plan", plan["UUID"], "--detail")
    moves = [row for row in actions if row["Action"] == "migrate"]
    assert len(moves) == 3
    first, second, third = (row["UUID"] for row in moves)
    skipped = openstack("action", "update", first, "--state", "SKIPPED", "--reason", "month-end closing")
    assert skipped["State"] == "SKIPPED"
    assert skipped["Status Message"] == "Action skipped by user. Reason: month-end closing"
    assert openstack("action", "update", second, "--state", "skipped")["Status Message"] == "Action skipped by user."
    changed = openstack("action", "update", second, "--reason", "asked by its owner")
    assert changed["Status Message"] == "Action skipped by user. Reason: asked by its owner"
    assert "not supported in API version 1.4" in openstack.refused(
        "--os-infra-optim-api-version=1.4", "action", "update", third, "--state", "SKIPPED"
    )

    assert openstack("actionplan", "start", plan["UUID"])["State"] == "PENDING"
    errors = openstack.refused("actionplan", "start", plan["UUID"])
    assert "Couldn't start when state is 'PENDING'. (HTTP 400)" in errors
    apply()
    states = {row["UUID"]: row["State"] for row in openstack("action", "list", "--audit", audit["UUID"])}
    assert (states[first], states[second], states[third]) == ("SKIPPED", "SKIPPED", "SUCCEEDED")
    done = openstack("actionplan", "show", plan["UUID"])
    assert done["State"] == "SUCCEEDED"
    assert done["Status Message"].startswith("One or more actions were skipped.")
    errors = openstack.refused("action", "update", third, "--state", "SKIPPED")
    assert "State transition not allowed: (SUCCEEDED -> SKIPPED) (HTTP 409)" in errors
    openstack.quietly("actionplan", "delete", plan["UUID"])
    assert openstack("actionplan", "list") == []


def test_plan_is_cancelled_once(openstack: OpenStack) -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    assert openstack("actionplan", "cancel", str(plan.uuid))["State"] == "CANCELLED"
    assert {row["State"] for row in openstack("action", "list", "--action-plan", str(plan.uuid))} == {"CANCELLED"}
    assert "State transition not allowed" in openstack.refused("actionplan", "cancel", str(plan.uuid))


def test_plan_table_shows_the_efficacy(openstack: OpenStack) -> None:
    indicator = {"name": "released_nodes_ratio", "description": "how many are free", "unit": "%", "value": 33.333}
    plan = make_plan(global_efficacy=[indicator])
    EfficacyIndicator.objects.create(action_plan=plan, name="migrations_count", description="how many move", value=4)
    for command in ("list", "show"):
        words = [str(plan.uuid)] if command == "show" else ["--detail"]
        status, shown, errors = openstack.run("actionplan", command, *words)
        assert (status, errors) == (0, "")
        assert "33.33" in shown


def test_error_of_an_unsupported_version_is_shown(openstack: OpenStack) -> None:
    errors = openstack.refused("goal", "list", "--os-infra-optim-api-version=1.999")
    oldest, newest = versions.format_version(versions.MINIMUM), versions.format_version(versions.MAXIMUM)
    assert f"Supported version range is {oldest} to {newest}" in errors


def test_scoring_engines_services_and_the_data_model_are_listed(openstack: OpenStack) -> None:
    Service.register(Service.DECISION_ENGINE, "one")
    Service.register(Service.APPLIER, "two")
    engines = {row["Name"] for row in openstack("scoringengine", "list")}
    assert "dummy_scorer" in engines
    assert openstack("scoringengine", "show", "dummy_scorer")["Name"] == "dummy_scorer"
    services = openstack("service", "list")
    assert {row["Name"] for row in services} == {"watcher-applier", "watcher-decision-engine"}
    assert openstack("service", "show", str(services[0]["ID"]))["Name"] == services[0]["Name"]
    model = openstack("datamodel", "list", "--os-infra-optim-api-version=1.6")
    assert len(model) == 4
    assert len(openstack("datamodel", "list", "--detail")) == 4
