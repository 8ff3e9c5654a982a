"""`manage.py clusters`, `nodes`, `servers` and `stacks`."""

from typing import Any

import pytest
from django.contrib.auth.models import User

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
