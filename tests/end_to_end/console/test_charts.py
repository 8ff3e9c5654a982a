"""Charts in a real browser, with the content security policy of the site."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from tests.builders import make_plan
from tests.end_to_end.console.browser import browser_page

pytestmark = [
    pytest.mark.any_database,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]
COLOURS = """() => [...document.querySelectorAll("canvas[data-chart]")].map(
  (canvas) => Chart.getChart(canvas).data.datasets[0].backgroundColor)"""


def test_charts_of_the_overview_use_the_colours_of_the_theme(
    cloud_admin: User, client: Client, live_server: Any
) -> None:
    now = timezone.now()
    make_plan({"a": []}, state="SUCCEEDED", start_time=now - timedelta(minutes=5), end_time=now)
    client.force_login(cloud_admin)
    with browser_page(base_url=live_server.url, color_scheme="light") as page:
        session = client.cookies["sessionid"].value
        page.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
        page.goto(reverse("home"))
        expect(page.locator("canvas[data-chart]")).to_have_count(2)
        light = page.evaluate(COLOURS)
        page.locator("[data-theme-toggle]:visible").first.click()
        page.wait_for_function(f"(light) => ({COLOURS})()[0] !== light", arg=light[0])
        page.get_by_text("Table", exact=True).first.click()
        expect(page.get_by_role("rowheader", name=f"{now:%Y-%m-%d}").first).to_be_visible()
        assert light[0] == "#1a6f37"
        assert page.complaints == []
