"""The console's list of servers that wait for capacity."""

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


def test_servers_that_wait_stand_there_the_oldest_first_and_no_others(browser: Client) -> None:
    make_server("runs", make_node())
    make_server("younger", state="pending", created_at="2026-02-02T00:00:00Z")
    make_server("older", state="pending", created_at="2026-01-01T00:00:00Z")
    text = text_of(browser)
    assert text.index("older") < text.index("younger")
    assert "runs" not in text
    assert text.count("none yet") == 2


def test_a_server_leads_to_the_plan_that_makes_room_for_it(browser: Client, settings: Settings) -> None:
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


def test_the_list_is_narrowed_by_name(browser: Client) -> None:
    make_server("one", state="pending")
    assert "No results." in text_of(browser, name="two")


def test_where_nobody_waits_the_list_says_so(browser: Client) -> None:
    assert "No servers are waiting for capacity." in text_of(browser)


def test_the_servers_lead_to_those_that_wait(browser: Client) -> None:
    assert PAGE in browser.get(reverse("cluster:servers")).content.decode()


def test_who_may_not_see_servers_may_not_see_who_waits(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    assert client.get(PAGE).status_code == 403


@pytest.mark.parametrize("number", [1, 40])
def test_the_list_takes_the_same_queries_however_many_wait(
    browser: Client, number: int, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    columns: dict[str, Any] = {"state": "pending", "vcpus": 1, "memory": 1, "disk": 1}
    Server.objects.bulk_create(Server(name=f"w{count}", **columns) for count in range(number))
    with django_assert_max_num_queries(7):
        assert text_of(browser).count("none yet") == number
