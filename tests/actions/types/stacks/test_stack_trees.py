"""Pages of stacks in the console."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from cluster.models import Server, Stack, StackResource
from plans.operations.marks import mark
from tests.actions.types.stacks.builders import create, group, part, server, within
from tests.builders import make_flavor, make_node

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop() -> Stack:
    make_node()
    make_flavor()
    return create("shop", db=server(), web=group(2), cache=within(node=server()))


@pytest.fixture
def browser(client: Client, reader: User) -> Client:
    client.force_login(reader)
    return client


def page(browser: Client, stack: Stack) -> str:
    return browser.get(reverse("stacks:detail", args=[stack.uuid])).content.decode()


def test_stack_page_shows_the_tree_of_its_resources(browser: Client, shop: Stack) -> None:
    text = page(browser, shop)
    for resource in StackResource.objects.present():
        assert f'id="resource-{resource.uuid}"' in text
    assert "4 of 4 healthy" in text
    assert "2 of 2 healthy" in text
    assert "on <bdi>compute1</bdi>" in text


def test_unhealthy_resource_is_counted_in_each_stack_above(browser: Client, shop: Stack) -> None:
    mark(part(shop, "cache", "node"), True, "it does not answer")
    Server.objects.filter(uuid=part(shop, "db").physical_id).update(state=Server.State.ERROR)
    text = page(browser, shop)
    assert "2 of 4 healthy" in text
    assert "0 of 1 healthy" in text
    assert "server in state error" in text
    assert "it does not answer" in text


def test_large_stack_unfolds_only_unhealthy_resources(
    browser: Client, shop: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cluster.stacks.trees.MAX_UNFOLDED", 2)
    mark(part(shop, "cache", "node"), True)
    assert page(browser, shop).count("<details open>") == 1


def test_page_query_count_does_not_depend_on_the_number_of_resources(
    browser: Client, shop: Stack, django_assert_max_num_queries: Any
) -> None:
    known = StackResource.objects.count()
    inner = Stack.objects.get(uuid=part(shop, "web").physical_id)
    more = [StackResource(stack=inner, name=f"m{number}", type="server") for number in range(200)]
    with django_assert_max_num_queries(30) as before:
        page(browser, shop)
    StackResource.objects.bulk_create(more)
    with django_assert_max_num_queries(30) as after:
        page(browser, shop)
    assert StackResource.objects.count() == known + 200
    assert len(after.captured_queries) == len(before.captured_queries)


def test_resource_redirects_to_its_anchor_in_the_root_stack(browser: Client, shop: Stack) -> None:
    node = part(shop, "cache", "node")
    answer = browser.get(reverse("stacks:resource", args=[node.uuid]))
    assert answer["Location"] == f"{reverse('stacks:detail', args=[shop.uuid])}#resource-{node.uuid}"


def test_list_shows_unhealthy_stacks(browser: Client, shop: Stack) -> None:
    address = reverse("stacks:list")
    assert ">unhealthy<" not in browser.get(address).content.decode()
    mark(part(shop, "cache", "node"), True)
    text = browser.get(address).content.decode()
    assert ">unhealthy<" in text
    assert text.count("shop-") == 0


def test_server_page_links_to_its_resource(browser: Client, shop: Stack) -> None:
    db = part(shop, "db")
    text = browser.get(reverse("cluster:server", args=[db.physical_id])).content.decode()
    assert reverse("stacks:resource", args=[db.uuid]) in text


def test_mark_button_requires_the_permission(client: Client, reader: User, cloud_admin: User, shop: Stack) -> None:
    to_mark = reverse("marks:mark-resource", args=[part(shop, "db").uuid])
    for person, offered in ((reader, False), (cloud_admin, True)):
        client.force_login(person)
        assert (to_mark in page(client, shop)) is offered


def test_stack_page_requires_the_view_permission(client: Client, stranger: User, shop: Stack) -> None:
    client.force_login(stranger)
    assert client.get(reverse("stacks:detail", args=[shop.uuid])).status_code == 403
