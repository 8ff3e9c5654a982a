"""The login by OpenID Connect: validation of ID tokens, the account and its groups, the logout, and outages."""

import logging
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from tests.watcher_site.openid.identity import CLIENT, SECRET, Provider
from watcher_site.accounts.tokens import make_token
from watcher_site.accounts.users import change_password
from watcher_site.models import ExternalIdentity, HistoryEntry
from watcher_site.openid.provider import ID_TOKEN
from watcher_site.refusals import Conflict

pytestmark = pytest.mark.django_db
CALLBACK = "login-openid-callback"
NOT_CONFIRMED = "Staff did not confirm your login. Try again."


def text(answer: Any) -> str:
    return unescape(answer.content.decode())


def begin(client: Client, **fields: str) -> str:
    """Log in at the provider, and return the address to which it redirects the browser."""
    left = client.post(reverse("login-openid"), fields)
    where = left.context["where"]
    return str(requests.get(where, allow_redirects=False, timeout=10).headers["Location"])


def log_in(client: Client, **fields: str) -> Any:
    back = urlsplit(begin(client, **fields))
    return client.get(f"{back.path}?{back.query}")


def refusal(client: Client) -> str:
    """Return the page after a login that is refused."""
    answer = log_in(client)
    assert answer["Location"] == reverse("login")
    assert "_auth_user_id" not in client.session
    return text(client.get(reverse("login")))


def test_login_creates_an_account_with_mapped_groups(client: Client, provider: Provider) -> None:
    answer = log_in(client, next="/console/plans/")
    assert answer["Location"] == "/console/plans/"
    assert client.get("/console/plans/").status_code == 200
    user = User.objects.get()
    assert (user.username, user.has_usable_password()) == ("rosa", False)
    assert [group.name for group in user.groups.all()] == ["cloud-admin"]
    assert ExternalIdentity.objects.values_list("issuer", "subject").get() == (provider.url, "subject-of-rosa")


def test_authorization_request_has_state_nonce_and_pkce_challenge(client: Client, provider: Provider) -> None:
    left = client.post(reverse("login-openid"))
    fields = parse_qs(urlsplit(left.context["where"]).query)
    assert (fields["response_type"], fields["code_challenge_method"]) == (["code"], ["S256"])
    assert min(len(fields[name][0]) for name in ("state", "nonce", "code_challenge")) >= 32
    assert fields["redirect_uri"] == [f"http://testserver{reverse(CALLBACK)}"]


def test_redirect_to_the_provider_keeps_the_strict_form_action_policy(client: Client, provider: Provider) -> None:
    left = client.post(reverse("login-openid"))
    assert "form-action 'self'" in left["Content-Security-Policy"].split("; ")
    assert f'<meta http-equiv="refresh" content="0; url={left.context["where"]}">' in text(left)


def test_login_is_started_only_by_a_form_of_the_site(provider: Provider) -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.post(reverse("login-openid")).status_code == 403
    assert client.get(reverse("login-openid")).status_code == 405


def test_login_page_offers_the_provider_only_if_configured(
    client: Client, provider: Provider, settings: Settings
) -> None:
    assert "Log in with Staff" in text(client.get(reverse("login")))
    settings.OIDC_ISSUER = ""
    assert "Log in with Staff" not in text(client.get(reverse("login")))
    assert [client.post(reverse("login-openid")).status_code, client.get(reverse(CALLBACK)).status_code] == [404, 404]


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://other.example.org"},
        {"aud": "another"},
        {"aud": [CLIENT, "another"]},
        {"aud": [CLIENT, "another"], "azp": "another"},
        {"exp": None},
        {"sub": None},
        {"nonce": None},
    ],
    ids=str,
)
def test_id_token_with_invalid_claims_is_refused(client: Client, provider: Provider, claims: dict[str, Any]) -> None:
    provider.claims |= claims
    assert NOT_CONFIRMED in refusal(client)
    entry = HistoryEntry.objects.get()
    assert (entry.deed, entry.outcome, entry.user) == ("user.login", "refused", "")
    assert not User.objects.exists()


@pytest.mark.parametrize("shifted", [{"exp": -3600}, {"iat": 3600}], ids=str)
def test_id_token_with_invalid_times_is_refused(client: Client, provider: Provider, shifted: dict[str, int]) -> None:
    provider.shifted = shifted
    assert NOT_CONFIRMED in refusal(client)


def test_small_clock_difference_of_the_provider_is_accepted(client: Client, provider: Provider) -> None:
    provider.shifted = {"iat": 20}
    assert log_in(client)["Location"] == reverse("home")


def test_id_token_signed_by_another_key_is_refused(client: Client, provider: Provider) -> None:
    provider.key = "another"
    assert NOT_CONFIRMED in refusal(client)


def test_id_token_with_another_nonce_is_refused(client: Client, provider: Provider) -> None:
    provider.nonce = "another"
    assert NOT_CONFIRMED in refusal(client)


def test_id_token_for_several_clients_is_accepted_if_authorized_for_the_site(
    client: Client, provider: Provider
) -> None:
    provider.claims |= {"aud": [CLIENT, "another"], "azp": CLIENT}
    assert log_in(client)["Location"] == reverse("home")


def test_state_is_accepted_once(client: Client, provider: Provider) -> None:
    back = urlsplit(begin(client))
    client.get(f"{back.path}?{back.query}")
    client.logout()
    client.get(f"{back.path}?{back.query}")
    assert "This login was not begun here, or too long ago." in text(client.get(reverse("login")))


def test_state_of_another_browser_is_refused(client: Client, provider: Provider) -> None:
    back = urlsplit(begin(Client()))
    begin(client)
    client.get(f"{back.path}?{back.query}")
    assert "_auth_user_id" not in client.session
    assert provider.paths.count("token") == 0


def test_code_of_another_login_is_refused_by_pkce(client: Client, provider: Provider) -> None:
    stolen, own = parse_qs(urlsplit(begin(Client())).query), parse_qs(urlsplit(begin(client)).query)
    client.get(reverse(CALLBACK), {"code": stolen["code"][0], "state": own["state"][0]})
    assert NOT_CONFIRMED in text(client.get(reverse("login")))


def test_login_refused_by_the_provider_is_reported(client: Client, provider: Provider) -> None:
    state = parse_qs(urlsplit(begin(client)).query)["state"][0]
    client.get(reverse(CALLBACK), {"error": "access_denied", "state": state})
    assert "You were not logged in at Staff." in text(client.get(reverse("login")))


def test_redirect_to_another_site_after_login_is_ignored(client: Client, provider: Provider) -> None:
    assert log_in(client, next="https://evil.example.org/")["Location"] == reverse("home")


def test_user_without_a_mapped_group_is_refused(client: Client, provider: Provider) -> None:
    provider.claims["groups"] = ["gardeners"]
    assert "None of your groups at Staff gives a right here." in refusal(client)
    assert not User.objects.exists()


def test_login_updates_the_groups(client: Client, provider: Provider) -> None:
    log_in(client)
    provider.claims["groups"] = ["staff"]
    log_in(Client())
    assert [group.name for group in User.objects.get().groups.all()] == ["reader"]
    entry = HistoryEntry.objects.filter(deed="user.set_groups").latest("pk")
    assert (entry.user, entry.details) == ("rosa", {"groups": {"from": ["cloud-admin"], "to": ["reader"]}})


def test_login_without_mapped_groups_removes_the_former_groups(client: Client, provider: Provider) -> None:
    log_in(client)
    _, token = make_token(User.objects.get())
    provider.claims["groups"] = []
    assert "gives a right here" in refusal(Client())
    assert not User.objects.get().groups.exists()
    assert Client().get("/v1/goals", headers={"X-Auth-Token": token}).status_code == 403


@pytest.mark.parametrize(
    ("path", "claims"),
    [
        ("groups", {"groups": "staff"}),
        ("realm_access.roles", {"realm_access": {"roles": ["staff"]}}),
        ("https://example.org/groups", {"https://example.org/groups": ["staff", 7]}),
    ],
)
def test_groups_claim_is_configurable(
    client: Client, provider: Provider, settings: Settings, path: str, claims: dict[str, Any]
) -> None:
    settings.OIDC_GROUPS_CLAIM, provider.claims = path, {"preferred_username": "rosa", **claims}
    log_in(client)
    assert User.objects.get().groups.get().name == "reader"


def test_groups_missing_in_the_id_token_are_read_from_userinfo(client: Client, provider: Provider) -> None:
    del provider.claims["groups"]
    provider.userinfo = {"groups": ["staff"]}
    log_in(client)
    assert User.objects.get().groups.get().name == "reader"


def test_userinfo_of_another_subject_is_refused(client: Client, provider: Provider) -> None:
    del provider.claims["groups"]
    provider.userinfo = {"sub": "another", "groups": ["staff"]}
    assert NOT_CONFIRMED in refusal(client)


def test_mapped_group_that_does_not_exist_is_refused_and_logged(
    client: Client, provider: Provider, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.OIDC_GROUPS = {"cloud-team": "cloud-admins"}
    assert "gives a right here" in refusal(client)
    assert "WATCHER_OIDC_GROUPS names a group that does not exist." in caplog.text


@pytest.mark.parametrize("name", ["rosa", "ROSA"])
def test_local_account_with_the_same_name_or_email_is_not_taken_over(
    client: Client, provider: Provider, name: str
) -> None:
    local = User.objects.create_user(name, "rosa@example.org", "rosa-password")
    provider.claims |= {"email": "rosa@example.org", "email_verified": True}
    log_in(client)
    made = User.objects.exclude(pk=local.pk).get()
    assert made.username == "rosa@127.0.0.1"
    assert not local.groups.exists()


def test_account_is_identified_by_the_subject_after_a_name_change(client: Client, provider: Provider) -> None:
    log_in(client)
    provider.claims["preferred_username"] = "ines"
    log_in(Client())
    assert User.objects.get().username == "rosa"


def test_subject_of_another_issuer_has_a_separate_account(client: Client, provider: Provider) -> None:
    other = User.objects.create_user("other")
    ExternalIdentity.objects.create(user=other, issuer="https://other.example.org", subject="subject-of-rosa")
    log_in(client)
    assert client.session["_auth_user_id"] != str(other.pk)


@pytest.mark.parametrize("name", [None, "", "Rosa Luxemburg <b>", "\x00", 7, "n" * 400])
def test_any_user_name_of_the_provider_becomes_a_valid_name(client: Client, provider: Provider, name: Any) -> None:
    provider.claims["preferred_username"] = name
    log_in(client)
    User.objects.get().clean_fields(exclude=["password"])


def test_disabled_account_is_refused(client: Client, provider: Provider) -> None:
    log_in(client)
    User.objects.update(is_active=False)
    assert "Your account is disabled." in refusal(Client())


def test_login_is_recorded_without_secrets_in_logs_and_history(
    client: Client, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    log_in(client)
    found = HistoryEntry.objects.order_by("pk").values_list("deed", "user", "outcome")
    assert list(found) == [
        ("user.create", "rosa", "success"),
        ("user.set_groups", "rosa", "success"),
        ("user.login", "rosa", "success"),
    ]
    kept = caplog.text + str(HistoryEntry.objects.values())
    assert SECRET not in kept
    assert client.session[ID_TOKEN] not in kept


def test_logout_redirects_to_the_logout_of_the_provider(client: Client, provider: Provider) -> None:
    log_in(client)
    token = client.session[ID_TOKEN]
    where = urlsplit(client.post(reverse("logout")).context["where"])
    fields = parse_qs(where.query)
    assert where.path == "/realms/staff/logout"
    assert fields["id_token_hint"] == [token]
    assert fields["post_logout_redirect_uri"] == [f"http://testserver{reverse('login')}"]
    assert "_auth_user_id" not in client.session


@pytest.mark.parametrize("end", [None, "javascript:alert(1)"])
def test_logout_stays_on_the_site_without_a_valid_end_session_endpoint(
    client: Client, provider: Provider, end: Any
) -> None:
    provider.configuration["end_session_endpoint"] = end
    log_in(client)
    assert client.post(reverse("logout"))["Location"] == reverse("login")


def test_logout_succeeds_during_an_outage_of_the_provider(client: Client, provider: Provider) -> None:
    log_in(client)
    cache.clear()
    provider.is_failing = True
    assert client.post(reverse("logout"))["Location"] == reverse("login")


@pytest.mark.parametrize(
    "configuration", [{"issuer": "https://other.example.org"}, {"token_endpoint": None}, {"jwks_uri": "ftp://x"}]
)
def test_invalid_provider_configuration_is_not_used(
    client: Client, provider: Provider, configuration: dict[str, Any]
) -> None:
    provider.configuration = configuration
    answer = client.post(reverse("login-openid"), follow=True)
    assert "Staff does not answer. Try again later, or log in with a local account." in text(answer)


def test_provider_outage_is_reported_and_local_accounts_can_log_in(
    client: Client, provider: Provider, reader: User
) -> None:
    back = urlsplit(begin(client))
    provider.is_failing = True
    client.get(f"{back.path}?{back.query}")
    assert "Staff does not answer." in text(client.get(reverse("login")))
    assert client.post(reverse("login"), {"username": "rob", "password": "rob-password"}).status_code == 302


def test_provider_configuration_is_cached(client: Client, provider: Provider) -> None:
    log_in(client)
    log_in(Client())
    assert provider.paths.count("openid-configuration") == 1


def test_account_page_names_the_provider_without_a_password_change(client: Client, provider: Provider) -> None:
    log_in(client)
    page = text(client.get(reverse("account:page")))
    assert f"OpenID provider {provider.url}" in page
    assert reverse("account:password") not in page
    assert client.get(reverse("account:password")).status_code == 404


def test_password_of_a_provider_account_cannot_be_set(client: Client, provider: Provider, cloud_admin: User) -> None:
    log_in(Client())
    with pytest.raises(Conflict, match="rosa logs in at http"):
        change_password("rosa", "something else entirely", "password")
    client.force_login(cloud_admin)
    user = User.objects.get(username="rosa")
    page = text(client.get(reverse("users:detail", args=[user.pk])))
    assert f"OpenID provider <bdi>{provider.url}</bdi>, subject <bdi>subject-of-rosa</bdi>" in page
    assert reverse("users:password", args=[user.pk]) not in page
    client.post(reverse("users:password", args=[user.pk]))
    user.refresh_from_db()
    assert not user.has_usable_password()


def test_group_table_accepts_any_group_of_the_site(client: Client, provider: Provider, settings: Settings) -> None:
    Group.objects.create(name="operators")
    settings.OIDC_GROUPS = {"cloud-team": "operators"}
    log_in(client)
    assert User.objects.get().groups.get().name == "operators"
