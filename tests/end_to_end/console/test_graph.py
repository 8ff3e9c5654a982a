"""The graph of a plan in a real browser: its size, and the highlighted parents and children of an action."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, expect

from tests.builders import make_plan
from tests.end_to_end.console.browser import browser_page

pytestmark = [
    pytest.mark.any_database,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def page(cloud_admin: User, client: Client, live_server: Any) -> Iterator[Page]:
    client.force_login(cloud_admin)
    plan = make_plan({"a": [], "b": ["a"], "c": ["b"], "d": ["a"], "e": []})
    with browser_page(base_url=live_server.url, reduced_motion="reduce") as page:
        session = client.cookies["sessionid"].value
        page.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
        page.goto(reverse("plans:detail", args=[plan.uuid]))
        yield page
        assert page.complaints == []  # type: ignore[attr-defined]


def width(page: Page) -> int:
    return int(page.locator("#graph svg").get_attribute("width") or 0)


def traced(page: Page) -> list[str]:
    return sorted(text.split()[1] for text in page.locator("#graph .box.traced title").all_text_contents())


def test_hovered_action_is_highlighted_with_its_parents_and_children(page: Page) -> None:
    page.locator("#graph .box", has_text="nop b").hover()
    expect(page.locator("#graph .box.traced")).to_have_count(3)
    assert [text.rstrip(",") for text in traced(page)] == ["a", "b", "c"]
    expect(page.locator("#graph .edge.traced")).to_have_count(2)


def test_focused_action_is_highlighted_until_it_loses_the_focus(page: Page) -> None:
    page.locator("#graph .box", has_text="nop c").focus()
    expect(page.locator("#graph .box.traced")).to_have_count(2)
    page.get_by_role("button", name="Zoom in").focus()
    expect(page.locator("#graph .box.traced")).to_have_count(0)


def test_zoom_buttons_change_the_size_of_the_graph(page: Page) -> None:
    first = width(page)
    page.get_by_role("button", name="Zoom in").click()
    assert width(page) > first
    page.get_by_role("button", name="100 %").click()
    assert width(page) == first
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("button", name="Fit").click()
    assert page.evaluate("graph.scrollWidth <= graph.clientWidth")
