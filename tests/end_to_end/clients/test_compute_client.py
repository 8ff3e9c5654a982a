"""The unmodified ``openstack server event …`` commands against the compute mount of a live server."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django.live_server_helper import LiveServer

from actions.graph.proposals import ProposedAction
from cluster.models import Server
from plans.planning.proposals import propose
from tests.builders import make_node, make_operation, make_server
from tests.end_to_end.clients.test_openstack_client import log_handlers  # noqa: F401 (a fixture)
from tests.plans.inline import run_waiting
from watcher_site.models import ProjectMember
from watcher_site.request_context import CallingContext

pytestmark = [
    pytest.mark.any_database,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:osc_lib"),
]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(
    live_server: LiveServer,
    cloud_admin: User,
    stranger: User,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    log_handlers: None,  # noqa: F811
) -> Run:
    """Run a command as a user at a microversion, and return its status, its output and its errors."""
    environment = {"AUTH_TYPE": "http_basic", "ENDPOINT": live_server.url}
    environment["COMPUTE_ENDPOINT_OVERRIDE"] = f"{live_server.url}/compute/v2.1"
    environment["IDENTITY_ENDPOINT_OVERRIDE"] = f"{live_server.url}/identity/v3"
    for name, value in environment.items():
        monkeypatch.setenv(f"OS_{name}", value)
    # These imports take seconds, and the tests of other files do not need them.
    from openstackclient.shell import main
    from osc_lib.clientmanager import ClientManager

    def run(version: str, *arguments: str, person: str = "alice", noun: str = "event") -> tuple[int, str, str]:
        monkeypatch.setenv("OS_USERNAME", person)
        monkeypatch.setenv("OS_PASSWORD", f"{person}-password")
        for service in ("compute", "image"):
            vars(ClientManager)[service]._handle = None
        capsys.readouterr()
        nouns = ["server", *([noun] if noun else [])]
        status = main([f"--os-compute-api-version={version}", *nouns, *arguments])
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run


@pytest.fixture
def servers(run: Run) -> Run:
    """Run a command of ``openstack server``, as ``run`` does for ``openstack server event``."""
    return partial(run, noun="")


def shown(answer: tuple[int, str, str]) -> Any:
    status, out, complaint = answer
    assert status == 0, complaint
    return json.loads(out)


def fail(server: Server) -> str:
    """Run a plan that fails to migrate a server, and return the request id of that operation."""
    inputs = {"resource_id": str(server.uuid), "migration_type": "live", "source_node": "compute1"}
    plan = propose([ProposedAction("migrate", inputs)])
    plan.launch(CallingContext(user="rosa"))
    run_waiting()
    return f"req-{plan.actions.get().uuid}"


def test_server_events_are_listed_and_shown_with_details_from_2_84_on(run: Run) -> None:
    server = make_server("web-1", make_node("compute1"), state="stopped", project_id="shop")
    request = fail(server)
    for version in ("2.1", "2.58", "2.83", "2.84"):
        [row] = shown(run(version, "list", "web-1", "--long", "-f", "json"))
        assert (row["Request ID"], row["Server ID"]) == (request, str(server.uuid))
        assert (row["Action"], row["Message"], row["User ID"]) == ("live-migration", "Error", "rosa")
    for version, details in (("2.83", None), ("2.84", "Live migration requires")):
        found = shown(run(version, "show", "web-1", request, "-f", "json"))
        assert (found["action"], found["request_id"]) == ("live-migration", request)
        post, pre = found["events"]
        assert (post["event"], pre["event"], pre["result"]) == ("post_condition", "pre_condition", "Error")
        assert (pre["details"] or "").startswith(details or "")
        assert (pre["details"] is None) == (details is None)


def test_project_member_sees_events_of_project_servers_only_and_without_details(run: Run, stranger: User) -> None:
    ProjectMember.objects.create(user=stranger, project_id="shop")
    own, other = (make_server(name, project_id=project) for name, project in (("web-1", "shop"), ("db-1", "bank")))
    for server in (own, other):
        make_operation(server, "stop", "Error", request_id="req-1")
    found = shown(run("2.84", "show", "web-1", "req-1", "-f", "json", person="sam"))
    assert [(event["result"], event["details"], event["host"]) for event in found["events"]] == [("Error", None, None)]
    status, _, complaint = run("2.84", "list", "db-1", person="sam")
    assert status != 0
    assert "No Server found for db-1" in complaint


def test_server_list_shows_all_servers(servers: Run) -> None:
    node = make_node("compute1")
    first = make_server("web-1", node, project_id="shop", image="ubuntu", flavor="small")
    second = make_server("web-2", node, state="error", project_id="bank")
    found = shown(servers("2.84", "list", "-f", "json"))
    assert [(row["ID"], row["Name"], row["Status"]) for row in found] == [
        (str(second.uuid), "web-2", "ERROR"),
        (str(first.uuid), "web-1", "ACTIVE"),
    ]
    assert found[1]["Flavor"] == "small"


@pytest.mark.parametrize("version", ["2.1", "2.46", "2.47", "2.84"])
@pytest.mark.parametrize(
    "options", [["--long"], ["--all-projects"], ["--no-name-lookup"], ["--name-lookup-one-by-one"], ["--limit", "1"]]
)
def test_server_list_accepts_its_options(servers: Run, version: str, options: list[str]) -> None:
    make_server("web-1", make_node("compute1"), image="ubuntu", flavor="small")
    [row] = shown(servers(version, "list", *options, "-f", "json"))
    assert row["Name"] == "web-1"


def test_server_list_is_filtered_by_name_and_status(servers: Run) -> None:
    make_server("web-1")
    make_server("db-1", state="error")
    assert [row["Name"] for row in shown(servers("2.84", "list", "--name", "web", "-f", "json"))] == ["web-1"]
    assert [row["Name"] for row in shown(servers("2.84", "list", "--status", "ERROR", "-f", "json"))] == ["db-1"]


def test_project_member_lists_servers_of_the_project(servers: Run, stranger: User) -> None:
    ProjectMember.objects.create(user=stranger, project_id="shop")
    make_server("web-1", project_id="shop")
    make_server("db-1", project_id="bank")
    assert [row["Name"] for row in shown(servers("2.84", "list", "-f", "json", person="sam"))] == ["web-1"]


def test_server_is_shown_by_name(servers: Run) -> None:
    server = make_server("web-1", make_node("compute1"), image="ubuntu", flavor="small")
    found = shown(servers("2.84", "show", "web-1", "-f", "json"))
    assert (found["id"], found["status"]) == (str(server.uuid), "ACTIVE")


def test_events_of_a_deleted_server_are_listed_by_page_and_time(run: Run) -> None:
    server = make_server("web-1")
    for number in range(3):
        make_operation(server, request_id=f"req-{number}")
    Server.objects.all().soft_delete()
    uuid = str(server.uuid)
    rows = shown(run("2.66", "list", uuid, "--limit", "1", "--marker", "req-2", "-f", "json"))
    assert [row["Request ID"] for row in rows] == ["req-1"]
    everything = shown(run("2.66", "list", uuid, "--changes-since", "2020-01-01T00:00:00Z", "-f", "json"))
    assert len(everything) == 3
    assert shown(run("2.66", "list", uuid, "--changes-before", "2020-01-01T00:00:00Z", "-f", "json")) == []
    status, _, complaint = run("2.84", "show", uuid, "req-none")
    assert status != 0
    assert "Action req-none not found" in complaint
