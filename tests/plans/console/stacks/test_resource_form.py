"""The form for a new stack with rows of resources, and the check of a template."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from cluster.models import Stack
from cluster.stacks.templates.templates import normalise
from plans.models import ActionPlan
from tests.builders import make_flavor, make_node, make_stack

pytestmark = pytest.mark.django_db

ADDRESS = "/console/stacks/new/"
TEMPLATE = {
    "resources": {
        "database": {"type": "server", "properties": {"flavor": "large", "availability_zone": "hall-a"}},
        "web": {
            "type": "scaling_group",
            "properties": {"size": 3, "member": {"type": "server", "properties": {"flavor": "small", "image": "i-1"}}},
            "depends_on": ["database"],
        },
    }
}
ROWS = [
    {"name": "database", "flavor": "large", "availability_zone": "hall-a"},
    {"name": "web", "flavor": "small", "image": "i-1", "size": "3", "depends_on": "database"},
]


@pytest.fixture
def browser(client: Client, cloud_admin: User) -> Client:
    make_flavor("small", vcpus=1, memory=1024)
    make_flavor("large", vcpus=4, memory=8192)
    make_node("one", zone="hall-a")
    client.force_login(cloud_admin)
    return client


def fields(rows: list[dict[str, str]], **others: str) -> dict[str, str]:
    cells = {f"resources.{number}.{name}": text for number, row in enumerate(rows) for name, text in row.items()}
    return {"name": "shop", **cells, **others}


def send(browser: Client, rows: list[dict[str, str]], **others: str) -> Any:
    return browser.post(ADDRESS, fields(rows, **others))


def test_rows_of_resources_become_the_template_of_the_stack(browser: Client) -> None:
    assert send(browser, ROWS, project_id="acme", timeout_mins="7").status_code == 302
    stack = Stack.objects.get()
    assert (stack.template, stack.project_id, stack.timeout_mins) == (normalise(TEMPLATE), "acme", 7)


def test_rows_of_resources_are_converted_to_a_template(browser: Client) -> None:
    page = send(browser, ROWS, document="1").content.decode()
    assert "<textarea" in page
    assert "type: scaling_group" in page
    assert 'value="shop"' in page
    assert not Stack.objects.exists()


def test_check_shows_the_capacity_and_creates_no_stack(browser: Client) -> None:
    page = send(browser, ROWS, check="1").content.decode()
    assert "The template is valid: 4 servers, 7 vCPU, 11 GB of memory." in page
    assert 'value="database"' in page
    assert not ActionPlan.objects.exists()


def test_template_is_checked_without_creating_the_stack(browser: Client) -> None:
    text = "resources: {web: {type: server, properties: {flavor: small}}}"
    page = browser.post(ADDRESS, {"name": "shop", "template": text, "check": "1"}).content.decode()
    assert "The template is valid: 1 server, 1 vCPU, 1 GB of memory." in page


def test_check_of_a_template_reports_its_error(browser: Client) -> None:
    text = "resources: {web: {type: server, properties: {flavor: huge}}}"
    page = browser.post(ADDRESS, {"name": "shop", "template": text, "check": "1"}).content.decode()
    assert "the cloud has no flavor huge" in page


def test_changed_template_is_checked_without_updating_the_stack(browser: Client) -> None:
    stack = make_stack(template=normalise(TEMPLATE), revision=2)
    changes = {"template": "resources: {web: {type: server, properties: {flavor: huge}}}", "revision": "2"}
    page = browser.post(reverse("stacks:update", args=[stack.uuid]), changes | {"check": "1"}).content.decode()
    assert "the cloud has no flavor huge" in page
    assert not ActionPlan.objects.exists()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "This field is required."),
        ([{"name": "web"}], "Row 1, Flavor: This field is required."),
        ([{"flavor": "small"}], "Row 1, Name: This field is required."),
        ([{"name": "web", "flavor": "huge"}], "Row 1, Flavor: Select a valid choice."),
        ([{"name": "web", "flavor": "small", "size": "1001"}], "Row 1, Members: Ensure this value is less than"),
        ([{"name": "web", "flavor": "small", "size": "many"}], "Row 1, Members: Enter a whole number."),
        ([{"name": "web", "flavor": "small"}] * 2, "Two resources have the name web."),
        ([{"name": "web", "flavor": "small", "depends_on": "db"}], "web.depends_on: there is no resource db."),
        ([{"name": "web", "flavor": "small", "depends_on": "web"}], "is a cycle."),
        ([{"name": "a b", "flavor": "small"}], "a b"),
    ],
)
@pytest.mark.parametrize("button", ["", "check", "document"])
def test_error_in_a_row_is_reported_with_the_rows(
    browser: Client, rows: list[dict[str, str]], words: str, button: str
) -> None:
    answer = send(browser, rows, **({button: "1"} if button else {}))
    assert answer.status_code == 200
    assert words in answer.content.decode()
    assert not Stack.objects.exists()


def test_form_links_to_the_template_form(browser: Client) -> None:
    assert 'href="?document=1"' in browser.get(ADDRESS).content.decode()
    assert "<textarea" in browser.get(ADDRESS, {"document": "1"}).content.decode()
