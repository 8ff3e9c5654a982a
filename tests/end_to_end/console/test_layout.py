"""The layout of pages and tables: column widths, indentation and controls, on wide screens and on phones."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, expect

from tests.builders import make_audit
from tests.end_to_end.console.browser import browser_page

pytestmark = [
    pytest.mark.any_database,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]

DESK, PHONE = 1400, 390


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
