"""The console's pages of the cloud."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tests.builders import make_node, make_server


@pytest.fixture
def browser(client: Client, reader: User) -> Client:
    client.force_login(reader)
    return client


def test_a_node_shows_how_much_of_it_is_used(browser: Client) -> None:
    make_server("web-1", make_node("compute1", vcpus=16), vcpus=4)
    text = browser.get(reverse("cluster:nodes")).content.decode()
    assert "4 of 16 vCPU" in text
    assert 'width="250.00"' in text


def test_a_nodes_page_lists_its_servers_and_those_on_their_way(browser: Client) -> None:
    node, other = make_node("compute1"), make_node("compute2")
    make_server("here", node)
    make_server("coming", other, destination=node)
    make_server("elsewhere", other)
    text = browser.get(reverse("cluster:node", args=[node.uuid])).content.decode()
    assert "here" in text
    assert "coming" in text
    assert "elsewhere" not in text


def test_a_server_links_to_its_node(browser: Client) -> None:
    node = make_node()
    text = browser.get(reverse("cluster:server", args=[make_server("web-1", node).uuid])).content.decode()
    assert reverse("cluster:node", args=[node.uuid]) in text


def test_a_server_that_was_scheduled_nowhere_says_so(browser: Client) -> None:
    text = browser.get(reverse("cluster:server", args=[make_server("web-1").uuid])).content.decode()
    assert "scheduled nowhere" in text


def test_an_empty_cloud_says_how_to_fill_it(browser: Client) -> None:
    assert "load_topology" in browser.get(reverse("cluster:nodes")).content.decode()


def test_a_filter_that_finds_nothing_offers_the_way_back(browser: Client) -> None:
    make_server("web-1", make_node())
    assert "Nothing matches." in browser.get(reverse("cluster:servers"), {"name": "zzz"}).content.decode()


def test_nobody_sees_the_cloud_without_the_right_to(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    assert client.get(reverse("cluster:nodes")).status_code == 403
    assert client.get(reverse("cluster:servers")).status_code == 403


@pytest.mark.parametrize("size", [1, 20])
@pytest.mark.parametrize("page", ["cluster:nodes", "cluster:servers"])
def test_the_lists_take_the_same_queries_whatever_their_size(
    browser: Client, django_assert_num_queries: Any, page: str, size: int
) -> None:
    for number in range(size):
        make_server(f"server-{number}", make_node(f"compute{number}"))
    with django_assert_num_queries(4):
        browser.get(reverse(page))
