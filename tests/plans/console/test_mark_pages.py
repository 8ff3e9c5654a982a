"""Marks in the console and by the command ``mark_unhealthy``."""

import io
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from cluster.models import Node, Server, Stack
from cluster.models.stacks import MARKED
from tests.builders import make_member, make_node, make_resource, make_server, make_stack
from tests.plans.operations.test_marking import state

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


@pytest.fixture
def server() -> Server:
    return make_server(node=make_node())


def show(browser: Client, page: str, record: Any) -> str:
    answer = browser.get(reverse(page, args=[record.uuid]))
    assert answer.status_code == 200
    return answer.content.decode()


def send(browser: Client, verb: str, record: Any, **fields: str) -> str:
    return browser.post(reverse(f"marks:{verb}", args=[record.uuid]), fields, follow=True).content.decode()


def test_server_is_marked_with_a_reason_and_its_mark_removed(browser: Client, server: Server) -> None:
    text = show(browser, "cluster:server", server)
    assert (reverse("marks:mark-server", args=[server.uuid]) in text, "Remove mark" in text) == (True, False)
    assert "Mark as unhealthy?" in show(browser, "marks:mark-server", server)
    text = send(browser, "mark-server", server, reason="<slow>")
    assert ("Server web-1 is marked unhealthy." in text, "&lt;slow&gt;" in text, "Remove mark" in text) == (True,) * 3
    assert "no longer marked" in send(browser, "clear-server", server)
    assert Server.objects.get().unhealthy_reason is None


def test_form_of_a_mark_quotes_the_default_reason(browser: Client, server: Server) -> None:
    text = show(browser, "marks:mark-server", server)
    assert f"Default: “{MARKED}”" in text


def test_server_page_shows_the_mark_of_its_node(browser: Client, server: Server) -> None:
    node = make_member(status="ACTIVE", server=server)
    assert "Node web is marked unhealthy." in send(browser, "mark-node", node)
    text = show(browser, "cluster:server", server)
    assert (reverse("cluster:member", args=[node.uuid]) in text, MARKED in text) == (True, True)
    assert "Remove mark" in show(browser, "cluster:member", node)
    send(browser, "clear-node", node)
    assert Node.objects.get().status == "ACTIVE"


def test_server_list_shows_marks_of_resources(browser: Client, server: Server) -> None:
    assert "marked unhealthy" not in browser.get(reverse("cluster:servers")).content.decode()
    resource = make_resource(Stack.objects.create(name="shop"), physical_id=str(server.uuid))
    send(browser, "mark-resource", resource, reason="<slow>")
    text = browser.get(reverse("cluster:servers")).content.decode()
    assert '<span title="&lt;slow&gt;">marked unhealthy</span>' in text


@pytest.mark.parametrize("is_nested", [False, True])
def test_server_page_links_its_resource_and_stack(browser: Client, server: Server, is_nested: bool) -> None:
    root = Stack.objects.create(name="shop")
    stack = make_stack("shop-inner", make_resource(root, "inner", type="stack")) if is_nested else root
    resource = make_resource(stack, "web", physical_id=str(server.uuid))
    text = show(browser, "cluster:server", server)
    assert f'<a href="{reverse("stacks:resource", args=[resource.uuid])}"><bdi>web</bdi></a>' in text
    assert f'<a href="{reverse("stacks:detail", args=[root.uuid])}"><bdi>{stack.name}</bdi></a>' in text


@pytest.mark.parametrize(
    ("columns", "reason", "words"),
    [({"task_state": "migrating"}, "", "while it is in task_state migrating"), ({}, "x" * 256, "at most 255")],
)
def test_refused_mark_is_reported_in_the_form_and_keeps_the_reason(
    browser: Client, server: Server, columns: dict[str, str], reason: str, words: str
) -> None:
    Server.objects.update(**columns)
    text = send(browser, "mark-server", server, reason=reason or "smells")
    assert (words in text, (reason or "smells") in text) == (True, True)
    assert Server.objects.get().unhealthy_reason is None


def test_readers_see_no_mark_button_and_are_refused(client: Client, reader: User, server: Server) -> None:
    client.force_login(reader)
    assert "marks/" not in show(client, "cluster:server", server)
    assert client.post(reverse("marks:mark-server", args=[server.uuid])).status_code == 403


def test_stacks_and_resources_are_marked_and_their_marks_removed(browser: Client) -> None:
    stack = Stack.objects.create(name="shop")
    web = make_resource(stack, "web")
    assert "Resource web is marked unhealthy." in send(browser, "mark-resource", web, reason="slow")
    assert state(web) == ("CHECK_FAILED", "slow")
    assert "Stack shop is marked unhealthy." in send(browser, "mark-stack", stack)
    assert "Stack shop is no longer marked unhealthy." in send(browser, "clear-stack", stack)
    assert "no longer marked" in send(browser, "clear-resource", web)
    assert "Resource web is no longer marked unhealthy." in send(browser, "clear-resource", web)


# The command


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("mark_unhealthy", *arguments, stdout=out)
    return out.getvalue().strip()


def test_command_marks_and_clears(server: Server) -> None:
    assert run("server", str(server.uuid), "--reason", "slow") == "server web-1: unhealthy: slow"
    assert run("server", str(server.uuid), "--reset") == "server web-1: not marked unhealthy"
    web = make_resource(Stack.objects.create(name="shop"), "web")
    assert run("resource", "shop", "web") == f"resource web: unhealthy: {MARKED}"
    assert run("stack", "shop") == f"stack shop: unhealthy: {MARKED}"
    assert state(web)[0] == "CHECK_FAILED"


@pytest.mark.parametrize("field", ["name", "uuid"])
def test_command_marks_resources_of_a_nested_stack(field: str) -> None:
    shop = Stack.objects.create(name="shop")
    pool = make_resource(shop, "pool", type="stack")
    nested = Stack.objects.create(name="shop-pool-x", root=shop, parent_resource=pool)
    member = make_resource(nested, "one")
    assert run("resource", str(getattr(nested, field)), "one") == f"resource one: unhealthy: {MARKED}"
    assert run("stack", str(getattr(nested, field))) == f"resource pool: unhealthy: {MARKED}"
    assert state(member)[0] == state(pool)[0] == "CHECK_FAILED"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["resource", "shop"], "name: a resource has one for its stack and one for itself; 1 were given."),
        (["stack", "shop", "web"], "name: a stack has one for itself; 2 were given."),
        (["server", "web-1"], "name: web-1 is not a UUID."),
        (["node", str(uuid4())], "could not be found"),
        (["stack", "nope"], "The Stack (nope) could not be found."),
    ],
)
def test_command_reports_a_refusal_in_one_line(arguments: list[str], words: str) -> None:
    with pytest.raises(CommandError) as caught:
        run(*arguments)
    assert words in str(caught.value)
