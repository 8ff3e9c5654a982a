"""Keystone's single sign-on: the redirection, and the acceptance of the token that its page posts."""

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from tests.watcher_site.keystone.identity import PROJECT, Keystone
from watcher_site.configuration.keystone import read_single_sign_on
from watcher_site.models import HistoryEntry
from watcher_site.web.middleware import KEYSTONE_KEY

pytestmark = pytest.mark.django_db
START, ARRIVAL, END = "login-sso", "login-sso-token", "login-sso-end"
NOT_BEGUN = "This login was not begun here, or too long ago. Try again."


@pytest.fixture
def site(running: Keystone, settings: Settings) -> Keystone:
    settings.KEYSTONE_URL = f"{running.url}/v3"
    settings.KEYSTONE_SSO, settings.KEYSTONE_SSO_URL = (
        "/auth/OS-FEDERATION/websso/openid",
        "https://public.example.org/v3",
    )
    running.people = {"rosa": {PROJECT: ["admin"]}}
    return running


def text(answer: Any) -> str:
    return str(answer.content.decode())


def finish(client: Client, token: str) -> Any:
    """Post the token as Keystone's page does, and the form of the response as the browser does."""
    sent = Client().post(reverse(ARRIVAL), {"token": token})
    return client.post(reverse(END), {"token": sent.context["token"]})


def test_button_redirects_to_keystone_with_the_return_address(client: Client, site: Keystone) -> None:
    assert "Log in with Keystone single sign-on" in text(client.get(reverse("login")))
    where = urlsplit(client.post(reverse(START)).context["where"])
    assert (where.netloc, where.path) == ("public.example.org", "/v3/auth/OS-FEDERATION/websso/openid")
    assert parse_qs(where.query) == {"origin": ["http://testserver/console/login/sso/token/"]}


def test_posted_token_starts_a_session_of_its_user(client: Client, site: Keystone) -> None:
    client.post(reverse(START), {"next": "/console/plans/"})
    posted = site.issue("rosa", project=None)
    assert finish(client, posted)["Location"] == "/console/plans/"
    assert client.get("/console/plans/").status_code == 200
    assert client.session[KEYSTONE_KEY]["user"]["name"] == "rosa"
    client.post(reverse("logout"))
    assert site.tokens == {}


def test_keystone_error_in_the_system_scopes_keeps_the_projects(client: Client, site: Keystone) -> None:
    client.post(reverse(START), {"next": "/console/plans/"})
    assert finish(client, site.issue("rosa", project=None, methods=["openid"]))["Location"] == "/console/plans/"


def test_user_with_several_scopes_chooses_one(client: Client, site: Keystone) -> None:
    site.people["rosa"]["system"] = ["reader"]
    client.post(reverse(START), {"next": "/console/plans/"})
    assert finish(client, site.issue("rosa", project=None))["Location"] == reverse("login-scope")
    assert client.post(reverse("login-scope"), {"scope": "system"})["Location"] == "/console/plans/"


def test_token_posted_from_keystone_is_forwarded_by_a_form_of_the_site(
    site: Keystone,
) -> None:
    client = Client(enforce_csrf_checks=True)
    answer = client.post(reverse(ARRIVAL), {"token": "gAAAAA-token"}, headers={"Origin": "https://public.example.org"})
    assert (answer.status_code, "no-store" in answer["Cache-Control"]) == (200, True)
    assert re.search(r'<form method="post" action="/console/login/sso/end/" data-send-at-once>', text(answer))
    assert client.post(reverse(END), {"token": "gAAAAA-token"}).status_code == 403


def test_token_is_refused_in_a_browser_without_a_started_login(client: Client, site: Keystone) -> None:
    """Otherwise another site could log a user in under another name."""
    token = site.issue("rosa", project=None)
    assert finish(client, token)["Location"] == reverse("login")
    assert NOT_BEGUN in text(client.get(reverse("login")))
    assert KEYSTONE_KEY not in client.session
    entry = HistoryEntry.objects.get()
    assert (entry.deed, entry.outcome) == ("user.login", "refused")


def test_started_login_accepts_one_token(client: Client, site: Keystone) -> None:
    client.post(reverse(START))
    finish(client, "gAAAAA-forged")
    finish(client, site.issue("rosa", project=None))
    assert KEYSTONE_KEY not in client.session


def test_login_is_started_only_by_a_form_of_the_site(site: Keystone) -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.post(reverse(START)).status_code == 403
    assert client.get(reverse(START)).status_code == 405


@pytest.mark.parametrize("token", ["", "two words", "\u00e9", "a" * 20_000])
def test_malformed_token_is_refused(client: Client, site: Keystone, token: str) -> None:
    answer = client.post(reverse(ARRIVAL), {"token": token}, follow=True)
    assert "Keystone sent no token. Try again." in text(answer)


def test_forged_token_is_refused(client: Client, site: Keystone) -> None:
    client.post(reverse(START))
    finish(client, "gAAAAA-forged")
    assert "Keystone refused the token. Log in again." in text(client.get(reverse("login")))


def test_keystone_outage_is_reported_on_the_login_page(client: Client, site: Keystone) -> None:
    client.post(reverse(START))
    token = site.issue("rosa", project=None)
    site.is_failing = True
    finish(client, token)
    assert "Keystone does not answer." in text(client.get(reverse("login")))


def test_single_sign_on_is_disabled_without_the_setting(client: Client, site: Keystone, settings: Settings) -> None:
    settings.KEYSTONE_SSO = ""
    assert "single sign-on" not in text(client.get(reverse("login")))
    assert [client.post(reverse(page)).status_code for page in (START, ARRIVAL, END)] == [404, 404, 404]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("openid", "/auth/OS-FEDERATION/websso/openid"),
        ("google/openid", "/auth/OS-FEDERATION/identity_providers/google/protocols/openid/websso"),
    ],
)
def test_protocol_setting_accepts_an_identity_provider(value: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHER_KEYSTONE_SSO", value)
    assert read_single_sign_on("WATCHER_KEYSTONE_SSO", "https://keystone.example.org/v3") == path


@pytest.mark.parametrize(
    ("value", "address"), [("openid", ""), ("a/b/c", "https://k/v3"), ("open id", "https://k/v3")]
)
def test_invalid_protocol_is_refused(value: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHER_KEYSTONE_SSO", value)
    with pytest.raises(ImproperlyConfigured, match=r"^WATCHER_KEYSTONE_SSO: "):
        read_single_sign_on("WATCHER_KEYSTONE_SSO", address)
