"""The documentation page of the API in a real browser: microversions, and requests from the page."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from actions.models import Action
from tests.builders import make_plan
from tests.end_to_end.console.accessibility import find_problems
from tests.end_to_end.console.browser import browser_page

pytestmark = [
    pytest.mark.any_database,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def action(transactional_db: None) -> Action:
    make_plan({"a": []})
    return Action.objects.get()


@pytest.fixture
def page(live_server: LiveServer, action: Action, cloud_admin: User, client: Client) -> Iterator[Page]:
    """A browser with the session of a cloud administrator."""
    client.force_login(cloud_admin)
    session = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}
    with browser_page(base_url=live_server.url) as page:
        page.context.add_cookies([session])
        yield page


def operation(page: Page, method: str, path: str) -> Any:
    return page.locator(f".opblock-{method}").filter(has=page.locator(f'[data-path="{path}"]'))


def test_page_conforms_to_the_content_security_policy_and_wcag(page: Page) -> None:
    page.goto("/v1/docs/")
    expect(page.get_by_role("heading", name="Watcher Site")).to_be_visible()
    page.get_by_label("Microversion").select_option("1.4")
    expect(page).to_have_url(re.compile(r"version=1\.4"))
    expect(operation(page, "get", "/v1/actions")).to_be_visible()
    expect(operation(page, "patch", "/v1/actions/{identifier}")).to_have_count(0)
    assert page.complaints == []
    assert find_problems(page, {"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]}) == []


def test_action_is_skipped_from_the_page(page: Page, action: Action) -> None:
    page.goto("/v1/docs/?version=1.5")
    block = operation(page, "patch", "/v1/actions/{identifier}")
    block.locator(".opblock-summary").click()
    block.get_by_role("button", name="Try it out").click()
    block.get_by_placeholder("identifier").fill(str(action.uuid))
    block.locator("textarea").first.fill('[{"op": "replace", "path": "/state", "value": "SKIPPED"}]')
    block.get_by_role("button", name="Execute").click()
    expect(block.locator(".live-responses-table tbody .response-col_status").first).to_contain_text("200")
    expect(block.locator(".live-responses-table")).to_contain_text("Action skipped by user.")
    assert page.complaints == []


def test_page_without_javascript_says_that_it_requires_it(
    live_server: LiveServer, cloud_admin: User, client: Client
) -> None:
    client.force_login(cloud_admin)
    session = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}
    with browser_page(base_url=live_server.url, java_script_enabled=False) as page:
        page.context.add_cookies([session])
        page.goto("/v1/docs/")
        expect(page.locator("#documentation")).to_contain_text("This page requires JavaScript")


def test_failure_to_load_the_scripts_is_shown(page: Page) -> None:
    page.route("**/swagger-ui-bundle*", lambda route: route.abort())
    page.goto("/v1/docs/")
    expect(page.locator("#documentation")).to_contain_text("This page requires JavaScript")


@pytest.mark.parametrize("status", [0, 401, 500])
def test_failure_to_load_the_document_ends_the_loading_indicator(page: Page, status: int) -> None:
    page.route("**/openapi.json*", lambda route: route.fulfill(status=status) if status else route.abort())
    page.goto("/v1/docs/")
    expect(page.locator("#documentation")).to_contain_text("Failed to load API definition")
    expect(page.locator("#documentation")).not_to_contain_text("This page requires JavaScript")
    expect(page.locator(".loading")).to_have_count(0)
