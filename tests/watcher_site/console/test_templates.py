"""Rules for every template of the console."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.template.loader import get_template
from django.test import Client, RequestFactory
from django.urls import get_resolver, reverse

from cluster.models import Cluster, Node, Volume
from tests.builders import make_cluster, make_plan, make_server
from tests.watcher_site.history.test_event_labels import views
from watcher_site.console.pages import OperationView

TEMPLATES = Path(__file__).parents[3] / "templates"
PAGES = sorted(TEMPLATES.rglob("*.html"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TEMPLATES)))
def test_template_obeys_the_content_security_policy(page: Path) -> None:
    text = page.read_text()
    assert re.findall(r"\sstyle=|\son[a-z]+=|javascript:|https?://", text) == []
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style", text) == []


def test_error_page_requires_no_database(client: object) -> None:
    """No ``db`` fixture: a query would fail this test."""
    text = get_template("500.html").render({}, RequestFactory().get("/console/"))
    assert "Internal error" in text


@pytest.mark.parametrize(
    ("accepted", "kind"),
    [
        ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html"),
        ("application/json", "application/json"),
        ("*/*", "application/json"),
    ],
)
def test_unknown_path_is_html_only_for_browsers(client: Client, db: None, accepted: str, kind: str) -> None:
    answer = client.get("/no/such/path", headers={"accept": accepted})
    assert answer.status_code == 404
    assert answer["Content-Type"].startswith(kind)


@pytest.mark.parametrize(
    ("page", "make", "button"),
    [
        ("plans:cancel", lambda: make_plan({"a": []}), "Cancel the action plan"),
        ("plans:start", lambda: make_plan({"a": []}), "Start the action plan"),
        ("clusters:delete", make_cluster, "Delete the cluster"),
        ("marks:mark-server", make_server, "Mark as unhealthy"),
    ],
)
def test_confirmation_has_a_button_that_names_the_operation_and_one_that_goes_back(
    client: Client, cloud_admin: User, page: str, make: Callable[[], Any], button: str
) -> None:
    client.force_login(cloud_admin)
    text = client.get(reverse(page, args=[make().uuid]), headers={"HX-Request": "true"}).content.decode()
    assert re.findall(r'class="btn btn-[^>]*>([^<]*)<', text) == [button, "Go back"]


def test_verb_of_every_confirmation_has_an_object() -> None:
    pages = views(get_resolver("watcher_site.console.urls").url_patterns)
    verbs = {str(page.verb) for page in pages if issubclass(page, OperationView) and page.question}
    assert verbs
    assert {verb for verb in verbs if " " not in verb} == set()


RUNNING = {one.lower() for one in [*Cluster.Status.values, *Node.Status.values, *Volume.Status.values]}


@pytest.mark.parametrize("status", sorted(one for one in RUNNING if one.endswith("ing") and one != "warning"))
def test_status_of_an_operation_in_progress_has_its_colour(status: str) -> None:
    style = (TEMPLATES / "static" / "watcher_site" / "console.css").read_text()
    rules = [
        rule for rule in re.findall(r"([^{}]+)\{([^{}]*)\}", style) if f".state-{status}," in f"{rule[0].strip()},"
    ]
    assert [rule[1].strip() for rule in rules if "--tone" in rule[1]] in (
        ["--tone: var(--ongoing);"],
        ["--tone: var(--cancelling);"],
    )
