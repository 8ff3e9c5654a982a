"""The console's pages of nodes of clusters and profiles."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from actions.models import Action
from tests.builders import make_cluster, make_member, make_plan, make_policy, make_profile, make_server

PAGES = ["cluster:members", "cluster:profiles", "cluster:policies"]


@pytest.fixture
def browser(client: Client, reader: User) -> Client:
    client.force_login(reader)
    return client


def show(browser: Client, page: str, /, *arguments: Any, **query: Any) -> str:
    answer = browser.get(reverse(page, args=arguments), query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_node_page_shows_status_profile_and_server(browser: Client) -> None:
    server = make_server("a server")
    node = make_member("web-1", status="ACTIVE", server=server, role="front", metadata={"team": "shop"})
    text = show(browser, "cluster:member", node.uuid)
    assert reverse("cluster:server", args=[server.uuid]) in text
    assert reverse("cluster:profile", args=[node.profile.uuid]) in text
    assert ("state-active" in text, "front" in text, "shop" in text) == (True, True, True)


def test_node_page_shows_the_id_of_a_deleted_server(browser: Client) -> None:
    server = make_server("a server")
    node = make_member("web-1", status="ERROR", server=server)
    server.delete()
    assert str(node.physical_id) in show(browser, "cluster:member", node.uuid)


def test_node_page_links_to_the_actions_of_the_node(browser: Client) -> None:
    node, other = make_member("web-1"), make_member("web-2")
    plan = make_plan()
    for one in (node, other):
        Action.objects.create(
            action_plan=plan, action_type="NODE_CHECK", input_parameters={"resource_id": str(one.uuid)}
        )
    assert f"{reverse('actions:list')}?target={node.uuid}" in show(browser, "cluster:member", node.uuid)
    text = show(browser, "actions:list", target=str(node.uuid))
    mine, others = Action.objects.get(target=str(node.uuid)), Action.objects.get(target=str(other.uuid))
    assert (str(mine.uuid) in text, str(others.uuid) in text) == (True, False)


def test_profile_page_shows_the_server_properties_and_the_nodes(browser: Client) -> None:
    profile = make_profile("web", spec={"flavor": "small", "image": "an image", "metadata": {"tier": "gold"}})
    make_member("web-1", profile=profile)
    make_member("db-1", profile=make_profile("db"))
    text = show(browser, "cluster:profile", profile.uuid)
    assert ("small" in text, "an image" in text, "gold" in text) == (True, True, True)
    assert ("web-1" in text, "db-1" in text) == (True, False)


def test_node_and_profile_lists_are_filtered(browser: Client) -> None:
    make_member("web-1", status="ERROR")
    make_member("db-1", profile=make_profile("other"))
    text = show(browser, "cluster:members", status="ERROR")
    assert ("web-1" in text, "db-1" in text) == (True, False)
    text = show(browser, "cluster:members", profile="oth")
    assert ("web-1" in text, "db-1" in text) == (False, True)
    text = show(browser, "cluster:profiles", name="oth")
    assert (">other<" in text, ">a profile<" in text) == (True, False)


@pytest.mark.parametrize("page", PAGES)
def test_empty_list_shows_instructions(browser: Client, page: str) -> None:
    assert re.search(r">No \w+ yet\. ", show(browser, page))


@pytest.mark.parametrize("page", PAGES)
def test_list_requires_the_view_permission(client: Client, stranger: User, page: str) -> None:
    client.force_login(stranger)
    assert client.get(reverse(page)).status_code == 403


@pytest.mark.parametrize("page", PAGES)
def test_list_query_count_does_not_depend_on_the_number_of_rows(
    browser: Client, page: str, django_assert_num_queries: Any
) -> None:
    make_member("first")
    make_policy("first")
    show(browser, page)
    for number in range(10):
        make_member(str(number), profile=make_profile(str(number)), cluster=make_cluster(str(number)))
        make_policy(str(number))
    # the session, the user, their projects, their saved filters, the number of rows, the rows
    with django_assert_num_queries(6):
        show(browser, page)
