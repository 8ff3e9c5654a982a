"""Logins at other sites with a real browser, which enforces the policies for cookies and cross-site requests."""

from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings

from tests.end_to_end.console.browser import browser_page
from tests.watcher_site.keystone.identity import PROJECT, Keystone
from tests.watcher_site.openid.identity import serve_provider

pytestmark = [
    pytest.mark.any_database,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def page(live_server: Any) -> Iterator[Page]:
    # The other sites are at 127.0.0.1, which is another site than localhost.
    assert "//localhost:" in live_server.url
    with browser_page(base_url=live_server.url) as page:
        yield page


def test_login_and_logout_at_an_openid_provider(settings: Settings, page: Page) -> None:
    with serve_provider(settings) as provider:
        page.goto("/console/plans/")
        page.get_by_role("button", name="Log in with Staff").click()
        expect(page).to_have_url("/console/plans/")
        expect(page.get_by_role("link", name="rosa")).to_be_visible()
        page.get_by_role("button", name="Log out").click()
        expect(page).to_have_url("/console/login/")
        assert provider.paths[-1] == "logout"


def test_login_with_keystone_single_sign_on(settings: Settings, page: Page) -> None:
    keystone = Keystone()
    keystone.people = {"rosa": {PROJECT: ["admin"], "system": ["reader"]}}
    Thread(target=keystone.serve_forever, args=(0.01,), daemon=True).start()
    settings.KEYSTONE_URL = settings.KEYSTONE_SSO_URL = f"{keystone.url}/v3"
    settings.KEYSTONE_SSO = "/auth/OS-FEDERATION/websso/openid"
    page.goto("/console/plans/")
    page.get_by_role("button", name="Log in with Keystone single sign-on").click()
    page.get_by_role("combobox", name="Scope").select_option("Project shop")
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url("/console/plans/")
    page.get_by_role("link", name="rosa").click()
    expect(page.get_by_text("Keystone, domain Default")).to_be_visible()
    keystone.shutdown()
    keystone.server_close()
