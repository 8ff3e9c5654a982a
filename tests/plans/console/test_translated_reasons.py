"""Pages in German show the reasons of the statuses of clusters, nodes and stacks in German."""

from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags

from actions.models import Action
from tests.builders import action, make_cluster, make_member, make_plan, make_resource, make_server, make_stack
from tests.conftest import person
from watcher_site.accounts.projects import add_member

pytestmark = pytest.mark.django_db

FAULT = "No valid host was found. There are not enough hosts available."
GERMAN_FAULT = "Kein geeigneter Host gefunden. Es sind nicht genug Hosts verfügbar."


@pytest.fixture
def browser(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def show(browser: Client, page: str, *arguments: Any) -> str:
    """Return the text of a page in German, without tags, in one line."""
    answer = browser.get(reverse(page, args=arguments), headers={"accept-language": "de"})
    assert answer.status_code == 200
    return " ".join(strip_tags(answer.content.decode()).split())


def test_list_and_page_of_a_cluster_show_the_reason_in_german(browser: Client) -> None:
    reason = "CLUSTER_RESIZE: number of active nodes is 1, below min_size (2)"
    cluster = make_cluster("web", status="ERROR", status_reason=reason)
    shown = "CLUSTER_RESIZE: Anzahl aktiver Knoten ist 1, unter min_size (2)"
    assert shown in show(browser, "clusters:list")
    assert shown in show(browser, "clusters:detail", cluster.uuid)


def test_lists_and_page_of_a_node_show_the_reason_in_german(browser: Client) -> None:
    cluster = make_cluster("web")
    node = make_member(
        "web-1", cluster=cluster, status="ERROR", status_reason="Check: Node is not ACTIVE. It has no server."
    )
    for page, *arguments in (("cluster:members",), ("clusters:detail", cluster.uuid), ("cluster:member", node.uuid)):
        assert "Prüfung: der Knoten ist nicht ACTIVE. Er hat keinen Server." in show(browser, page, *arguments)


def test_list_and_page_of_a_stack_show_the_reasons_in_german(browser: Client) -> None:
    reason = f"Resource web: {FAULT}"
    stack = make_stack("shop", status="CREATE_FAILED", status_reason=reason)
    make_resource(stack, "web", status="CREATE_FAILED", status_reason=FAULT)
    assert f"Ressource web: {GERMAN_FAULT}" in show(browser, "stacks:list")
    page = show(browser, "stacks:detail", stack.uuid)
    assert page.count(GERMAN_FAULT) == 2
    assert "noch kein Server" in page


def test_pages_of_a_plan_and_an_action_show_the_failure_of_its_type_in_german(browser: Client) -> None:
    plan = make_plan({"a": []}, state="FAILED")
    Action.objects.update(
        state="FAILED",
        status_message="Action failed in execute: Policy check failure: Failed policy 'grow': Policy grow cooldown is"
        " still in progress.",
        outputs={"reason": "Policy already attached."},
    )
    shown = "Richtlinie 'grow' nicht erfüllt: Die Wartezeit (cooldown) der Richtlinie grow läuft noch."
    assert shown in unescape(show(browser, "plans:detail", plan.uuid))
    page = unescape(show(browser, "actions:detail", action(plan, "a").uuid))
    assert shown in page
    assert "Die Richtlinie ist bereits zugewiesen." in page


def test_pages_for_members_of_projects_show_the_reasons_in_german(client: Client) -> None:
    client.force_login(person("mia"))
    add_member("mia", "acme")
    stack = make_stack("shop", project_id="acme", status="CREATE_FAILED", status_reason=FAULT)
    reason = "CLUSTER_CHECK: number of active nodes is 0, below min_size (2)"
    cluster = make_cluster("web", project_id="acme", status="ERROR", status_reason=reason)
    make_member(
        "web-1", cluster=cluster, project_id="acme", status="ERROR", status_reason="Its server was not created"
    )
    assert GERMAN_FAULT in show(client, "projects:stacks")
    assert GERMAN_FAULT in show(client, "projects:stack", stack.uuid)
    shown = "CLUSTER_CHECK: Anzahl aktiver Knoten ist 0, unter min_size (2)"
    assert shown in show(client, "projects:clusters")
    page = show(client, "projects:cluster", cluster.uuid)
    assert shown in page
    assert "Sein Server wurde nicht erstellt" in page


def test_page_of_a_server_shows_its_fault_in_german(browser: Client) -> None:
    server = make_server("web-1", state="error", fault={"message": FAULT})
    assert GERMAN_FAULT in show(browser, "cluster:server", server.uuid)


def test_default_reason_of_a_mark_is_shown_in_german(browser: Client) -> None:
    reason = "state changed by resource_mark_unhealthy api"
    node = make_member("web-1", status="ERROR", status_reason=reason, unhealthy_reason=reason)
    page = show(browser, "cluster:member", node.uuid)
    assert "Als fehlerhaft markiert: Zustand durch die API resource_mark_unhealthy geändert" in page
