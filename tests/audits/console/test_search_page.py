"""The search for all objects: results, permissions, query count and invalid texts."""

import re
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from actions.models import Action
from plans.models import ActionPlan
from tests.builders import (
    make_audit,
    make_cluster,
    make_member,
    make_node,
    make_plan,
    make_profile,
    make_server,
    make_stack,
)
from watcher_site.accounts.projects import add_member
from watcher_site.history import record
from watcher_site.request_context import CallingContext

pytestmark = pytest.mark.django_db
ADDRESS = "/console/search/"
HEADING = re.compile(r'<h2 id="group-\d+">\s*(.*?)\s*<small>', re.DOTALL)
REQUEST = "req-1f2e3d4c-0000-4000-8000-123456789abc"
ROSA = CallingContext(user="rosa", request_id=REQUEST)
NUMBERED = UUID("0dd1e5ab-1111-4222-8333-444455556666")


@pytest.fixture
def browser(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def search(browser: Client, text: str) -> Any:
    return browser.get(ADDRESS, {"q": text})


def groups(browser: Client, text: str) -> list[str]:
    answer = search(browser, text)
    assert answer.status_code == 200
    return HEADING.findall(answer.content.decode())


@pytest.fixture
def plan() -> ActionPlan:
    return make_plan({}, audit=make_audit("evening consolidation"))


def act_on(plan: ActionPlan, target: str, action_type: str = "migrate") -> Action:
    return Action.objects.create(action_plan=plan, action_type=action_type, input_parameters={"resource_id": target})


@pytest.fixture
def cloud(plan: ActionPlan) -> dict[str, Any]:
    """Objects of all kinds, with shop in their names."""
    cluster = make_cluster("shop cluster")
    server = make_server("shop-1")
    objects = {
        "node": make_node("shop-node"),
        "server": server,
        "cluster": cluster,
        "member": make_member("shop member", cluster=cluster),
        "stack": make_stack("shop stack"),
        "profile": make_profile("shop profile"),
        "action": act_on(plan, str(server.uuid)),
    }
    ActionPlan.objects.update(audit=make_audit("shop audit"))
    return objects


def test_objects_of_all_kinds_are_found_by_a_part_of_their_names(browser: Client, cloud: dict[str, Any]) -> None:
    record("cluster.check", "SHOP", caller=ROSA)
    kinds = ["Action plans", "Actions", "Audits", "Compute nodes", "Servers", "Clusters", "Nodes of clusters"]
    assert groups(browser, "SHOP") == [*kinds, "Stacks", "Profiles", "History"]


@pytest.mark.parametrize("kind", ["node", "server", "cluster", "member", "stack", "profile", "action"])
@pytest.mark.parametrize("length", [8, 13, 36])
def test_uuid_prefix_redirects_to_the_page_of_the_object(
    browser: Client, cloud: dict[str, Any], kind: str, length: int
) -> None:
    answer = search(browser, str(cloud[kind].uuid)[:length].upper())
    assert answer.status_code == 302
    assert str(cloud[kind].uuid) in answer["Location"]


def test_plan_is_found_by_uuid_prefix_and_by_the_shown_name_of_its_audit(browser: Client) -> None:
    plan = make_plan({}, audit=make_audit("dummy-2026-11-21T12:10:30.420311"))
    assert search(browser, str(plan.uuid)[:8])["Location"] == reverse("plans:detail", args=[plan.uuid])
    assert groups(browser, "dummy 2026-11-21 12:10:30") == ["Action plans", "Audits"]


def test_plan_without_an_audit_is_found_by_its_operation(browser: Client) -> None:
    act_on(make_plan({}), str(make_server("web-1").uuid), "stop")
    assert groups(browser, "stop web-1") == ["Action plans"]
    assert groups(browser, "migrate web-1") == []


def test_objects_with_the_same_uuid_prefix_are_listed(browser: Client) -> None:
    for number in range(2):
        make_server(f"web-{number}", uuid=UUID(int=NUMBERED.int + number))
    assert groups(browser, str(NUMBERED)[:8]) == ["Servers"]
    assert search(browser, str(NUMBERED)).status_code == 302


def test_object_named_like_a_uuid_is_listed_with_the_object_of_this_uuid(browser: Client) -> None:
    make_server("web-1", uuid=NUMBERED)
    make_server(str(NUMBERED)[:8])
    page = search(browser, str(NUMBERED)[:8]).content.decode()
    assert page.count('<a href="/console/servers/') == 2 + 1


def test_actions_are_found_by_the_name_of_a_deleted_server(browser: Client, plan: ActionPlan) -> None:
    server = make_server("web-1")
    act_on(plan, str(server.uuid))
    server.name = "renamed"
    server.save()
    assert groups(browser, "renamed") == ["Actions", "Servers"]
    type(server).objects.soft_delete()
    assert groups(browser, "renamed") == ["Actions"]


def test_exact_server_name_finds_only_the_actions_of_this_server(browser: Client, plan: ActionPlan) -> None:
    one, other = make_server("web-1"), make_server("web-10")
    mine, others = act_on(plan, str(one.uuid)), act_on(plan, str(other.uuid))
    page = search(browser, "web-1").content.decode()
    assert str(mine.uuid) in page
    assert str(others.uuid) not in page


def test_actions_are_found_by_a_part_of_their_type(browser: Client, plan: ActionPlan) -> None:
    act_on(plan, "x", "volume_migrate")
    assert groups(browser, "volume_mig") == ["Actions"]


@pytest.mark.parametrize("text", [REQUEST, "req-1f2e3d4c", "req-1f2e…", "req-1f2e3d4"])
def test_history_is_found_by_a_request_id_or_its_prefix(browser: Client, text: str) -> None:
    record("cluster.check", "shop", caller=ROSA)
    assert groups(browser, text) == ["Requests"]


def test_history_is_found_by_the_uuid_of_a_deleted_object(browser: Client) -> None:
    server = make_server("web-1")
    record("server.delete", server, caller=ROSA)
    server.delete()
    assert groups(browser, str(server.uuid)[:8]) == ["History"]


def test_group_shows_the_best_results_and_links_to_the_filtered_list(browser: Client) -> None:
    for number in range(20):
        make_server(f"a-web-{number}")
    exact = make_server("web")
    page = search(browser, "web").content.decode()
    assert page.count('<a href="/console/servers/') == 5 + 1
    assert str(exact.uuid) in page
    assert 'href="/console/servers/?name=web"' in page
    assert "of 21" in browser.get("/console/servers/?name=web").content.decode()


@pytest.mark.parametrize("size", [0, 30])
def test_query_count_does_not_depend_on_the_number_of_results(
    browser: Client, django_assert_num_queries: DjangoAssertNumQueries, size: int
) -> None:
    plan = make_plan({}, audit=make_audit("web"))
    for number in range(size):
        server = make_server(f"web-{number}")
        make_member(f"web-{number}", cluster=make_cluster(f"web-{number}"))
        make_stack(f"web-{number}")
        act_on(plan, str(server.uuid))
        record("server.stop", "web", caller=ROSA)
    with django_assert_num_queries(16):
        assert search(browser, "web").status_code == 200


def test_search_without_permissions_has_no_results(client: Client, stranger: User, cloud: dict[str, Any]) -> None:
    record("cluster.check", "shop", caller=ROSA)
    client.force_login(stranger)
    assert groups(client, "shop") == []
    assert search(client, str(cloud["server"].uuid)).status_code == 200


@pytest.mark.parametrize(
    ("permission", "group"),
    [
        ("view_actionplan", "Action plans"),
        ("view_action", "Actions"),
        ("view_audit", "Audits"),
        ("view_computenode", "Compute nodes"),
        ("view_server", "Servers"),
        ("view_cluster", "Clusters"),
        ("view_node", "Nodes of clusters"),
        ("view_stack", "Stacks"),
        ("view_profile", "Profiles"),
        ("view_historyentry", "History"),
    ],
)
def test_group_is_shown_with_the_view_permission_of_its_list(
    client: Client, stranger: User, cloud: dict[str, Any], permission: str, group: str
) -> None:
    record("cluster.check", "shop", caller=ROSA)
    stranger.user_permissions.add(Permission.objects.get(codename=permission))
    client.force_login(stranger)
    assert groups(client, "shop") == [group]


def test_project_member_finds_only_objects_of_the_project(client: Client, stranger: User) -> None:
    for project in ("blue", "red"):
        make_server(f"{project}-shop", project_id=project)
        make_cluster(f"{project}-shop", project_id=project)
        make_stack(f"{project}-shop", project_id=project)
    add_member(stranger.get_username(), "blue")
    client.force_login(stranger)
    page = search(client, "shop").content.decode()
    assert HEADING.findall(page) == ["Servers", "Clusters", "Stacks"]
    assert page.count("blue-shop") == 3
    assert "red-shop" not in page
    assert "/console/projects/servers/" in page
    assert 'href="/console/servers/' not in page


def test_search_without_login_redirects_to_the_login(client: Client, db: None) -> None:
    assert search(client, "shop")["Location"].startswith(reverse("login"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "This field is required."),
        ("   ", "This field is required."),
        ("x", "Enter at least 2 characters."),
        ("x" * 10_000, "Ensure this value has at most 255 characters (it has 10000)."),
        ("web\0", "Null characters are not allowed."),
    ],
    ids=["empty", "blank", "short", "long", "nul"],
)
def test_invalid_text_is_refused(browser: Client, text: str, message: str) -> None:
    answer = search(browser, text)
    assert answer.status_code == 200
    assert message in answer.content.decode()


@pytest.mark.parametrize(
    "text",
    [
        "'; DROP TABLE x; --",
        '"><script>',
        "%",
        "__",
        "100%",
        "\\\\",
        "\u202e\u05d7\u05d9\u05e4",
        "\U0001f600",
        "√∞",
        "--",
        "req-",
        "…………………",
    ],
    ids=str,
)
def test_text_with_special_characters_has_no_results(browser: Client, cloud: dict[str, Any], text: str) -> None:
    page = search(browser, text * (2 if len(text) == 1 else 1))
    assert page.status_code == 200
    assert "No results for" in page.content.decode()
    assert "<script>" not in page.content.decode()


def test_page_without_a_text_shows_instructions(browser: Client) -> None:
    page = browser.get(ADDRESS).content.decode()
    assert "Enter a name or a part of it" in page
    assert "status-message warning" not in page


def test_every_page_has_the_search_field_with_the_text(browser: Client, cloud: dict[str, Any]) -> None:
    field = re.compile(r'<input[^>]*id="search"[^>]*>')
    assert field.search(browser.get(reverse("plans:list")).content.decode())
    found = field.search(search(browser, 'sh"op').content.decode())
    assert found
    assert 'value="sh&quot;op"' in found[0]
