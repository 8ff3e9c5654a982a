"""`manage.py clusters`, `nodes`, `servers` and `stacks`."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from actions.models import Action
from tests.builders import make_cluster, make_node, make_server, make_stack
from tests.command_runs import Run, newest, run
from watcher_site.models import HistoryEntry

__all__ = ["run"]


@pytest.fixture
def cloud(db: None) -> dict[str, Any]:
    """One object of each kind."""
    cluster = make_cluster("web", size=1)
    server = make_server("web-1", make_node())
    return {"clusters": cluster, "nodes": cluster.nodes.get(), "servers": server, "stacks": make_stack("shop")}


@pytest.mark.parametrize("kind", ["clusters", "nodes", "servers", "stacks"])
def test_list_has_the_rows_of_the_api(run: Run, cloud: dict[str, Any], cloud_admin: User, kind: str) -> None:
    answer = newest(cloud_admin).get(f"/{kind}/detail").json()[kind]
    listed: Any = run(kind, "list", "--format", "json").json
    assert [{**row, "links": None} for row in listed] == [{**row, "links": None} for row in answer]
    assert str(cloud[kind].uuid) in run(kind, "list").output


@pytest.mark.parametrize("kind", ["clusters", "nodes", "servers", "stacks"])
def test_object_is_shown_by_its_name_or_a_prefix_of_its_uuid(run: Run, cloud: dict[str, Any], kind: str) -> None:
    named = run(kind, "show", cloud[kind].name)
    assert named.status == 0
    assert str(cloud[kind].uuid) in named.output
    assert run(kind, "show", str(cloud[kind].uuid)[:13]).output == named.output


def test_ambiguous_server_name_is_refused_with_the_candidates(run: Run, cloud: dict[str, Any]) -> None:
    other = make_server("web-1")
    ended = run("servers", "show", "web-1")
    assert (ended.status, ended.errors.count("\n")) == (2, 1)
    assert str(other.uuid) in ended.errors
    assert run("servers", "show", other.uuid).status == 0


def test_api_filters_are_options_of_list(run: Run, cloud: dict[str, Any]) -> None:
    make_server("db-1")
    assert run("servers", "list", "--host", "compute1", "--columns", "name").output == "NAME\nweb-1\n"
    assert run("servers", "list", "--status", "nosuch").status == 2


def test_nested_stacks_are_listed_on_request(run: Run, cloud: dict[str, Any]) -> None:
    assert run("stacks", "list", "--show-nested", "true").status == 0
    assert run("stacks", "list", "--show-nested", "perhaps").status == 2


@pytest.mark.parametrize("kind", ["nodes", "servers", "stacks"])
def test_object_is_marked_unhealthy_and_its_mark_removed(run: Run, cloud: dict[str, Any], kind: str) -> None:
    name = cloud[kind].name
    marked = run(kind, "mark", name, "--reason", "its disk is slow", "--as", "alice")
    assert (marked.status, marked.output) == (0, f"{kind[:-1]} {name}: unhealthy: its disk is slow\n")
    assert HistoryEntry.objects.get(message="its disk is slow").user == "alice"
    assert run(kind, "unmark", name).output == f"{kind[:-1]} {name}: not marked unhealthy\n"
    assert run(kind, "mark", "nosuch").status == 2


@pytest.mark.parametrize(
    ("kind", "subcommand", "options", "action_type"),
    [
        ("clusters", "scale-out", ["--count", "2"], "CLUSTER_SCALE_OUT"),
        ("clusters", "scale-in", ["--yes"], "CLUSTER_SCALE_IN"),
        ("clusters", "resize", ["--nodes", "3", "--max-size", "4"], "CLUSTER_RESIZE"),
        ("clusters", "check", [], "CLUSTER_CHECK"),
        ("clusters", "recover", ["--operation", "REBUILD", "--check-capacity"], "CLUSTER_RECOVER"),
        ("clusters", "delete", ["--yes", "--force"], "CLUSTER_DELETE"),
        ("nodes", "check", [], "NODE_CHECK"),
        ("nodes", "recover", ["--check"], "NODE_RECOVER"),
        ("nodes", "delete", ["--yes"], "NODE_DELETE"),
        ("stacks", "delete", ["--yes"], "delete_stack"),
    ],
)
@pytest.mark.parametrize(
    ("only", "state", "word"), [([], "PENDING", "started"), (["--plan-only"], "RECOMMENDED", "created")]
)
def test_operation_makes_an_action_plan(
    run: Run,
    cloud: dict[str, Any],
    kind: str,
    subcommand: str,
    options: list[str],
    action_type: str,
    only: list[str],
    state: str,
    word: str,
) -> None:
    name = cloud[kind].name
    ended = run(kind, subcommand, name, *options, *only, "--as", "alice")
    planned = Action.objects.get(derived_from=None)
    assert (planned.action_type, planned.action_plan.state) == (action_type, state)
    expected = f"{subcommand} {kind[:-1]} {name}: action plan {planned.action_plan.uuid} {word}\n"
    assert (ended.status, ended.output) == (0, expected)


def test_size_of_a_cluster_is_an_exact_number_of_nodes(run: Run, cloud: dict[str, Any]) -> None:
    assert run("clusters", "resize", "web", "--nodes", "3").status == 0
    parameters = Action.objects.get().input_parameters
    assert (parameters["adjustment_type"], parameters["number"]) == ("EXACT_CAPACITY", 3)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["scale-out", "web", "--count", "0"], "count"),
        (["resize", "web"], "adjustment_type"),
        (["resize", "web", "--nodes", "-1"], "number"),
        (["scale-in", "web"], "--yes is required"),
        (["recover", "web", "--operation", "REPAIR"], "--operation"),
    ],
)
def test_invalid_operation_on_a_cluster_is_refused_in_one_line(
    run: Run, cloud: dict[str, Any], arguments: list[str], rule: str
) -> None:
    ended = run("clusters", *arguments)
    assert (ended.status, ended.errors.count("\n")) == (2, 1)
    assert rule in ended.errors
    assert not Action.objects.exists()


def test_deletion_of_a_cluster_with_nodes_requires_force(run: Run, cloud: dict[str, Any]) -> None:
    ended = run("clusters", "delete", "web", "--yes")
    assert (ended.status, ended.errors.count("\n")) == (2, 1)
    assert "1 node" in ended.errors
    assert not Action.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "action_type"),
    [(["rebuild", "web-1", "--image", "cirros"], "rebuild"), (["delete", "web-1"], "delete_server")],
)
def test_operation_on_a_server_starts_at_once(
    run: Run, cloud: dict[str, Any], arguments: list[str], action_type: str
) -> None:
    ended = run("servers", *arguments, "--yes")
    assert (ended.status, ended.output) == (0, f"{arguments[0]} server web-1: requested\n")
    planned = Action.objects.get()
    assert (planned.action_type, planned.action_plan.state) == (action_type, "PENDING")
