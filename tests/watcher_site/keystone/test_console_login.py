"""The login at Keystone in the console: scopes, permissions, the end of a session, and outages of Keystone."""

import logging
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, Settings

from plans.models import ActionPlan
from tests.builders import make_plan
from tests.watcher_site.keystone.identity import PROJECT, Keystone
from watcher_site.console.keystone_login import PENDING
from watcher_site.models import FailedLogins, HistoryEntry
from watcher_site.web.keystone_session import CHECK_SECONDS
from watcher_site.web.middleware import KEYSTONE_KEY as KEY

pytestmark = pytest.mark.django_db
ROSA = {"username": "rosa", "password": "password of rosa", "domain": "Default"}


@pytest.fixture
def site(running: Keystone, settings: Settings) -> Keystone:
    """Run a Keystone for logins to the console, where rosa is an administrator of one project."""
    settings.KEYSTONE_URL = f"{running.url}/v3"
    running.people = {"rosa": {PROJECT: ["admin", "member"]}}
    return running


@pytest.fixture
def rosa(client: Client, site: Keystone) -> Client:
    assert log_in(client).status_code == 302
    return client


def log_in(client: Client, **fields: str) -> Any:
    return client.post(reverse("login-keystone"), {**ROSA, **fields})


def text(answer: Any) -> str:
    return str(answer.content.decode())


def change_session_token(client: Client, **values: float) -> None:
    """Change the data of the token in the session."""
    session = client.session
    session[KEY] = {**session[KEY], **values}
    session.save()


def test_login_starts_a_session_without_an_account(client: Client, site: Keystone) -> None:
    answer = client.post(reverse("login-keystone"), {**ROSA, "next": "/console/plans/"})
    assert answer["Location"] == "/console/plans/"
    assert client.get("/console/plans/").status_code == 200
    assert not User.objects.exists()


def test_login_replaces_the_session_of_a_disabled_account(client: Client, site: Keystone) -> None:
    former = User.objects.create_user("former")
    client.force_login(former)
    User.objects.update(is_active=False)
    log_in(client)
    User.objects.update(is_active=True)
    assert client.get("/console/plans/").context["user"].get_username() == "rosa"


def test_login_page_offers_keystone_only_if_configured(client: Client, site: Keystone, settings: Settings) -> None:
    assert "Log in with Keystone" in text(client.get(reverse("login")))
    settings.KEYSTONE_URL = ""
    assert "Log in with Keystone" not in text(client.get(reverse("login")))
    assert client.get(reverse("login-keystone")).status_code == 404


def test_button_opens_the_form_with_the_default_domain(client: Client, site: Keystone, settings: Settings) -> None:
    settings.KEYSTONE_DOMAIN = "staff"
    answer = client.post(reverse("login-keystone"), {"next": "/console/plans/"})
    assert 'name="domain" value="staff"' in text(answer)
    assert 'name="next" value="/console/plans/"' in text(answer)
    assert "This field is required" not in text(answer)


@pytest.mark.parametrize("wrong", [{"password": "guess"}, {"username": "nobody"}, {"domain": "other"}])
def test_failed_login_is_refused_recorded_and_counted(client: Client, site: Keystone, wrong: dict[str, str]) -> None:
    answer = log_in(client, **wrong)
    assert "Keystone refused the user name, the password or the domain." in text(answer)
    entry = HistoryEntry.objects.get()
    assert (entry.deed, entry.outcome, entry.user, entry.object_name) == ("user.login", "refused", "", "")
    assert FailedLogins.objects.count() == 2


def test_limited_login_sends_no_request_to_keystone(client: Client, site: Keystone, settings: Settings) -> None:
    settings.MOST_FAILED_LOGINS = 1
    log_in(client, password="guess")
    answer = log_in(client)
    assert (answer.status_code, "Too many failed logins" in text(answer)) == (429, True)
    assert site.tokens == {}


def test_failed_keystone_logins_do_not_limit_a_local_account_of_the_same_name(
    client: Client, site: Keystone, settings: Settings, reader: User
) -> None:
    settings.MOST_FAILED_LOGINS = 1
    site.people = {"rob": {PROJECT: ["admin"]}}
    log_in(client, username="rob", password="guess")
    answer = client.post(reverse("login"), {"username": "rob", "password": "rob-password"})
    assert answer.status_code == 302


def test_password_and_tokens_are_neither_logged_nor_readable_in_the_session(
    client: Client, site: Keystone, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    log_in(client)
    kept = caplog.text + str(Session.objects.get().get_decoded()) + str(HistoryEntry.objects.values())
    assert not [secret for secret in [ROSA["password"], *site.tokens] if secret in kept]


def test_user_without_a_scope_is_refused(client: Client, site: Keystone) -> None:
    site.people = {"rosa": {}}
    assert "no role in any project" in text(log_in(client))
    assert site.tokens == {}


def test_user_with_roles_without_permissions_is_refused(client: Client, site: Keystone) -> None:
    site.people = {"rosa": {PROJECT: ["auditor"]}}
    answer = log_in(client)
    assert "None of your roles gives a right here in this scope: Project shop." in text(answer)
    assert site.tokens == {}
    assert KEY not in client.session


def test_user_with_several_scopes_chooses_one(client: Client, site: Keystone) -> None:
    site.people = {"rosa": {PROJECT: ["auditor"], "system": ["reader"]}}
    answer = client.post(reverse("login-keystone"), {**ROSA, "next": "/console/plans/"})
    assert answer["Location"] == reverse("login-scope")
    assert client.get("/console/plans/").status_code == 302
    refused = client.post(reverse("login-scope"), {"scope": f"project:{PROJECT}"})
    assert "None of your roles gives a right" in text(refused)
    chosen = client.post(reverse("login-scope"), {"scope": "system"})
    assert chosen["Location"] == "/console/plans/"
    assert client.get("/console/plans/").status_code == 200


def test_scope_of_another_user_cannot_be_chosen(client: Client, site: Keystone) -> None:
    site.people = {"rosa": {PROJECT: ["reader"], "system": ["reader"]}}
    log_in(client)
    assert "Select a valid choice" in text(client.post(reverse("login-scope"), {"scope": "project:another"}))


def test_expired_scope_choice_ends_the_login(client: Client, site: Keystone) -> None:
    site.people = {"rosa": {PROJECT: ["reader"], "system": ["reader"]}}
    log_in(client)
    session = client.session
    session[PENDING] = {**session[PENDING], "until": 1}
    session.save()
    answer = client.post(reverse("login-scope"), {"scope": "system"}, follow=True)
    assert "Log in to choose a scope." in text(answer)
    assert KEY not in client.session


def test_scope_is_changed_on_the_account_page(rosa: Client, site: Keystone) -> None:
    site.people["rosa"]["system"] = ["reader"]
    before = set(site.tokens)
    answer = rosa.post(reverse("account:scope"), {"scope": "system"}, follow=True)
    assert "The scope of your session: System." in text(answer)
    assert rosa.session[KEY]["user"]["roles"] == ["reader"]
    assert len(before - set(site.tokens)) == 1
    entry = HistoryEntry.objects.latest("pk")
    assert (entry.deed, entry.details) == (
        "user.change_scope",
        {"scope": {"from": "Project shop", "to": "System"}},
    )


def test_account_page_names_keystone_without_tokens_and_password(rosa: Client) -> None:
    page = text(rosa.get(reverse("account:page")))
    assert "Keystone, domain Default" in page
    assert "Project shop" in page
    assert "admin, member" in page
    assert reverse("account:password") not in page
    assert [rosa.get(reverse(f"account:{name}")).status_code for name in ("password", "new-token")] == [404, 404]
    assert not HistoryEntry.objects.filter(outcome="refused").exists()


def test_scope_page_is_not_found_for_local_accounts(client: Client, site: Keystone, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    assert client.get(reverse("account:scope")).status_code == 404
    assert not HistoryEntry.objects.exists()


def test_operations_are_recorded_with_user_name_user_id_and_project(rosa: Client) -> None:
    plan = make_plan({"a": []})
    rosa.post(reverse("plans:start", args=[plan.uuid]))
    assert ActionPlan.objects.get().state == "PENDING"
    entry = HistoryEntry.objects.get(deed="action_plan.start")
    assert (entry.user, entry.user_id, entry.project_id) == ("rosa", "id-of-rosa", PROJECT)


def test_logins_and_logouts_are_recorded_with_user_name_and_user_id(rosa: Client) -> None:
    rosa.post(reverse("logout"))
    found = HistoryEntry.objects.order_by("pk").values_list("deed", "user", "user_id", "object_name")
    assert list(found) == [
        ("user.login", "rosa", "id-of-rosa", "rosa"),
        ("user.logout", "rosa", "id-of-rosa", "rosa"),
    ]


def test_logout_revokes_the_tokens(rosa: Client, site: Keystone) -> None:
    assert len(site.tokens) == 2
    assert rosa.post(reverse("logout"))["Location"] == reverse("login")
    assert site.tokens == {}
    assert rosa.get("/console/plans/").status_code == 302


def test_logout_works_without_keystone(rosa: Client, site: Keystone) -> None:
    site.is_failing = True
    assert rosa.post(reverse("logout")).status_code == 302
    assert rosa.get("/console/plans/").status_code == 302


def test_login_changes_the_session_key(client: Client, site: Keystone) -> None:
    client.session.save()
    client.get(reverse("login-keystone"))
    session = client.session
    session["own"] = True
    session.save()
    before = client.cookies["sessionid"].value
    log_in(client)
    assert client.cookies["sessionid"].value != before
    assert not Session.objects.filter(pk=before).exists()


def test_session_ends_with_its_token(rosa: Client) -> None:
    plan = make_plan({"a": []})
    change_session_token(rosa, expires_at=1)
    answer = rosa.post(reverse("plans:start", args=[plan.uuid]), follow=True)
    assert "Your session has ended. The request was not executed: log in and try again." in text(answer)
    assert ActionPlan.objects.get().state == "RECOMMENDED"
    assert KEY not in rosa.session


def test_session_expires_after_the_idle_timeout(rosa: Client, settings: Settings) -> None:
    assert abs(rosa.session.get_expiry_age() - settings.SESSION_COOKIE_AGE) < 5
    assert rosa.session["seen_at"]


def test_token_is_validated_at_intervals(rosa: Client, site: Keystone) -> None:
    rosa.get("/console/plans/")
    assert site.validations == []
    change_session_token(rosa, checked_at=0)
    rosa.get("/console/plans/")
    rosa.get("/console/plans/")
    assert len(site.validations) == 1
    assert CHECK_SECONDS == 300


def test_session_ends_after_its_token_is_revoked(rosa: Client, site: Keystone) -> None:
    site.tokens.clear()
    change_session_token(rosa, checked_at=0)
    assert rosa.get("/console/plans/").status_code == 302


def test_session_follows_changed_roles_of_its_token(rosa: Client, site: Keystone) -> None:
    for token in site.tokens.values():
        token["roles"] = [{"id": "member", "name": "member"}]
    change_session_token(rosa, checked_at=0)
    assert rosa.get("/console/plans/").status_code == 403


def test_session_continues_during_a_keystone_outage(rosa: Client, site: Keystone) -> None:
    site.is_failing = True
    change_session_token(rosa, checked_at=0)
    assert rosa.get("/console/plans/").status_code == 200


def test_keystone_outage_is_reported_and_local_accounts_can_log_in(
    client: Client, site: Keystone, reader: User
) -> None:
    site.is_failing = True
    answer = log_in(client)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "Keystone does not answer. Try again later, or log in with a local account." in text(answer)
    assert not FailedLogins.objects.exists()
    assert client.post(reverse("login"), {"username": "rob", "password": "rob-password"}).status_code == 302


def test_saved_form_is_restored_after_the_choice_of_a_scope(client: Client, site: Keystone) -> None:
    site.people["rosa"]["system"] = ["admin"]
    plan = make_plan({"a": []})
    path = reverse("plans:skip", args=[plan.uuid])
    kept = client.post(path, {"actions": [str(plan.actions.get().uuid)], "reason": "not today"})
    offered = client.post(reverse("login-keystone"), {"next": path, "kept": kept.context["kept"]})
    log_in(client, next=path, kept=offered.context["kept"])
    assert "not today" in text(client.post(reverse("login-scope"), {"scope": "system"}, follow=True))


def test_redirect_to_another_site_after_login_is_ignored(client: Client, site: Keystone) -> None:
    answer = client.post(reverse("login-keystone"), {**ROSA, "next": "https://evil.example.org/"})
    assert answer["Location"] == reverse("home")


def test_page_takes_no_query_for_the_user(rosa: Client, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(1):  # That of the session.
        rosa.get(reverse("account:page"))


def test_expired_token_of_a_login_is_not_used(client: Client, site: Keystone) -> None:
    site.people["rosa"]["system"] = ["reader"]
    log_in(client)
    for token in site.tokens.values():
        token["expires_at"] = "2020-01-01T00:00:00.000000Z"
    assert "Log in again." in text(client.get(reverse("login-scope"), follow=True))


def test_api_accepts_the_session_with_the_same_permissions(rosa: Client) -> None:
    assert rosa.get("/v1/action_plans").status_code == 200
    assert rosa.post("/v1/audits", {}, content_type="application/json").status_code in {400, 403}
