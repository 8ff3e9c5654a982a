"""The login to the console at a real Keystone: passwords, scopes, single sign-on, revocation and expiry."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from tests.openstack.configuration import PASSWORD
from tests.openstack.control_plane import PATIENCE
from tests.openstack.keystone import KeystoneService
from tests.waiting import wait_for
from watcher_site.keystone.login import LoginFailed, read_token
from watcher_site.models import HistoryEntry
from watcher_site.web.keystone_session import tokens_of
from watcher_site.web.middleware import KEYSTONE_KEY

pytestmark = [pytest.mark.keystone, pytest.mark.django_db]
# In seconds: the lifetimes of tokens that expire in a test. The first sufficient lifetime is used.
LIFETIMES = (8, 20, 60, 240)
ISSUER = "https://login.example.org"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeystoneService]:
    dashboard = f"http://testserver{reverse('login-sso-token')}"
    found = KeystoneService(tmp_path_factory.mktemp("keystone"), dashboard)
    found.start()
    try:
        found.fill()
        found.federate(ISSUER)
        yield found
    finally:
        found.stop()


@pytest.fixture
def keystone(service: KeystoneService, settings: Settings) -> KeystoneService:
    settings.KEYSTONE_URL = settings.KEYSTONE_SSO_URL = f"{service.url}/v3"
    settings.KEYSTONE_SSO = "/auth/OS-FEDERATION/websso/openid"
    return service


@pytest.fixture
def short_login(client: Client, keystone: KeystoneService) -> Iterator[None]:
    """Log the client in with tokens of the shortest lifetime that suffices for the login."""
    for lifetime in LIFETIMES:
        restart(keystone, lifetime)
        if log_in(client, "rosa").headers.get("Location") == reverse("home"):
            break
    yield
    restart(keystone)


def restart(service: KeystoneService, *lifetime: int) -> None:
    service.stop()
    service.configure(*lifetime)
    service.start()


def text(answer: Any) -> str:
    return unescape(answer.content.decode())


def is_valid(token: str) -> bool:
    try:
        read_token(token)
    except LoginFailed:
        return False
    return True


def log_in(client: Client, name: str, password: str = PASSWORD) -> Any:
    return client.post(reverse("login-keystone"), {"username": name, "password": password, "domain": "Default"})


def test_user_with_one_scope_logs_in_and_logout_revokes_the_tokens(client: Client, keystone: KeystoneService) -> None:
    assert log_in(client, "rosa")["Location"] == reverse("home")
    assert client.get("/console/plans/").status_code == 200
    assert "Project shop" in text(client.get(reverse("account:page")))
    tokens = tokens_of(client.session).values()
    assert all(is_valid(token) for token in tokens)
    client.post(reverse("logout"))
    assert not any(is_valid(token) for token in tokens)
    entry = HistoryEntry.objects.earliest("pk")
    assert (entry.deed, entry.user, entry.user_id) == ("user.login", "rosa", keystone.users["rosa"])
    assert not User.objects.exists()


def test_wrong_password_wrong_domain_and_unknown_role_are_refused(client: Client, keystone: KeystoneService) -> None:
    assert "Keystone refused the user name" in text(log_in(client, "rosa", "guess"))
    other = {"username": "rosa", "password": PASSWORD, "domain": "nowhere"}
    assert "Keystone refused the user name" in text(client.post(reverse("login-keystone"), other))
    assert "None of your roles gives a right here in this scope: Project shop." in text(log_in(client, "otto"))


def test_user_with_several_scopes_selects_and_changes_the_scope(client: Client, keystone: KeystoneService) -> None:
    assert log_in(client, "rob")["Location"] == reverse("login-scope")
    client.post(reverse("login-scope"), {"scope": f"project:{keystone.project}"})
    assert client.get("/console/plans/").status_code == 403
    changed = client.post(reverse("account:scope"), {"scope": "system"}, follow=True)
    assert "The scope of your session: System." in text(changed)
    assert client.get("/console/plans/").status_code == 200


def test_session_ends_when_its_token_expires(client: Client, short_login: None) -> None:
    assert KEYSTONE_KEY in client.session
    wait_for(lambda: client.get("/console/plans/").status_code == 302, PATIENCE)
    assert KEYSTONE_KEY not in client.session


def test_session_ends_when_the_user_is_disabled(client: Client, keystone: KeystoneService) -> None:
    log_in(client, "ines")
    identity = keystone.connect("admin", project_name="admin").identity
    identity.update_user(keystone.users["ines"], enabled=False)
    session = client.session
    session[KEYSTONE_KEY] = {**session[KEYSTONE_KEY], "checked_at": 0}
    session.save()
    try:
        assert client.get("/console/").status_code == 302
    finally:
        identity.update_user(keystone.users["ines"], enabled=True)


@pytest.mark.parametrize("protocol", ["websso/openid", "identity_providers/staff/protocols/openid/websso"])
def test_single_sign_on_of_keystone_logs_in(
    client: Client, keystone: KeystoneService, settings: Settings, protocol: str
) -> None:
    """The headers are those of the module of the web server in front of Keystone for the identity provider."""
    settings.KEYSTONE_SSO = f"/auth/OS-FEDERATION/{protocol}"
    where = client.post(reverse("login-sso"), {"next": "/console/plans/"}).context["where"]
    page = requests.get(where, headers={"OIDC-ISS": ISSUER, "OIDC-NAME": "frida"}, timeout=PATIENCE)
    assert page.status_code == 200, page.text
    [action] = re.findall(r'action="([^"]+)"', page.text)
    [token] = re.findall(r'id="token" value="([^"]+)"', page.text)
    sent = Client().post(urlsplit(action).path, {"token": token})
    answer = client.post(reverse("login-sso-end"), {"token": sent.context["token"]})
    assert answer["Location"] == "/console/plans/"
    assert client.session[KEYSTONE_KEY]["user"]["name"] == "frida"
    assert client.get("/console/plans/").status_code == 200
    tokens = tokens_of(client.session).values()
    client.post(reverse("logout"))
    assert not any(is_valid(token) for token in tokens)


def test_single_sign_on_of_keystone_refuses_another_site(keystone: KeystoneService, settings: Settings) -> None:
    where = f"{settings.KEYSTONE_URL}{settings.KEYSTONE_SSO}"
    answer = requests.get(
        where, {"origin": "https://evil.example.org/"}, headers={"OIDC-ISS": ISSUER}, timeout=PATIENCE
    )
    assert answer.status_code == 401
