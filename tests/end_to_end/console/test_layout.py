"""The layout of pages and tables: column widths, indentation and controls, on wide screens and on phones."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, expect

from plans.models import ActionPlan
from tests.builders import make_audit, make_plan
from tests.end_to_end.console.browser import browser_page

pytestmark = [
    pytest.mark.any_database,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]

DESK, PHONE = 1400, 390
# The number of rows that the lower edge of a list cuts.
CUT_ROWS = """(list) => {
  const edge = list.getBoundingClientRect().bottom;
  const rows = [...list.children].map((row) => row.getBoundingClientRect());
  return rows.filter((row) => row.top < edge - 1 && row.bottom > edge + 1).length;
}"""


@pytest.fixture
def rows(transactional_db: None) -> None:
    make_audit()


@pytest.fixture
def page(cloud_admin: User, client: Client, live_server: Any) -> Iterator[Page]:
    client.force_login(cloud_admin)
    with browser_page(base_url=live_server.url, viewport={"width": DESK, "height": 900}) as page:
        session = client.cookies["sessionid"].value
        page.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
        yield page
        assert page.complaints == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["audits:list", "plans:list"])
def test_empty_list_has_no_button_for_a_comparison(page: Page, name: str) -> None:
    page.goto(reverse(name))
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_role("button", name="Compare selected")).to_be_hidden()


def test_list_with_rows_has_a_button_for_a_comparison(rows: None, page: Page) -> None:
    page.goto(reverse("audits:list"))
    expect(page.get_by_role("button", name="Compare selected")).to_be_visible()


@pytest.fixture
def large_plan(transactional_db: None) -> ActionPlan:
    """Return a plan of 20 layers, whose actions are not drawn."""
    return make_plan({str(number): [str(number - 20)] if number >= 20 else [] for number in range(400)})


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_list_of_layers_is_cut_between_two_rows(large_plan: ActionPlan, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(reverse("plans:detail", args=[large_plan.uuid]))
    assert page.locator("#layers li").count() == 20
    assert page.locator("#layers").evaluate("(list) => list.scrollHeight > list.clientHeight")
    assert page.locator("#layers").evaluate(CUT_ROWS) == 0
