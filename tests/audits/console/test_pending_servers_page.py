"""The list of pending servers, which wait for capacity, in the console."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, Settings

from audits.engine.capacity import request_capacity_audit
from audits.engine.engine import DecisionEngine
from cluster.models import Server, ServerWait
from plans.models import ActionPlan
from tests.builders import make_node, make_server

PAGE = reverse("audits:waiting")


@pytest.fixture
def browser(client: Client, reader: User) -> Client:
    client.force_login(reader)
    return client


def text_of(browser: Client, **query: str) -> str:
    return browser.get(PAGE, query).content.decode()


def test_list_shows_only_pending_servers_oldest_first(browser: Client) -> None:
    make_server("runs", make_node())
    make_server("younger", state="pending", created_at="2026-02-02T00:00:00Z")
    make_server("older", state="pending", created_at="2026-01-01T00:00:00Z")
    text = text_of(browser)
    assert text.index("older") < text.index("younger")
    assert "runs" not in text
    assert text.count("none yet") == 2


def test_pending_server_links_to_its_capacity_plan(browser: Client, settings: Settings) -> None:
    settings.USE_PENDING_STATE = True
    make_node(vcpus=4)
    make_server("fits", state="pending")
    make_server("huge", state="pending", vcpus=64)
    request_capacity_audit()
    ServerWait.objects.update(since="2000-01-01T00:00:00Z")
    engine = DecisionEngine()
    while engine.run_next_audit():
        pass
    text = text_of(browser)
    assert text.count(reverse("plans:detail", args=[ActionPlan.objects.get().uuid])) == 2
    assert text.count("RECOMMENDED") == 2
    assert "build in" in text
    assert "no capacity: set to error in" in text


def test_list_shows_the_memory_in_gigabytes(browser: Client) -> None:
    make_server("one", state="pending", memory=3072)
    assert '<td class="number text-end text-nowrap" data-label="Memory (GB)"><div>3</div></td>' in text_of(browser)


def test_list_is_filtered_by_name(browser: Client) -> None:
    make_server("one", state="pending")
    assert "No results." in text_of(browser, name="two")


def test_empty_list_shows_a_text(browser: Client) -> None:
    assert "No servers are waiting for capacity." in text_of(browser)


def test_server_list_links_to_the_pending_servers(browser: Client) -> None:
    assert PAGE in browser.get(reverse("cluster:servers")).content.decode()


def test_list_is_forbidden_without_the_permission_to_view_servers(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    assert client.get(PAGE).status_code == 403


@pytest.mark.parametrize("number", [1, 40])
def test_list_query_count_does_not_depend_on_the_number_of_pending_servers(
    browser: Client, number: int, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    columns: dict[str, Any] = {"state": "pending", "vcpus": 1, "memory": 1, "disk": 1}
    Server.objects.bulk_create(Server(name=f"w{count}", **columns) for count in range(number))
    with django_assert_max_num_queries(7):
        assert text_of(browser).count("none yet") == number
