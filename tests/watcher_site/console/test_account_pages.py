"""The account pages of the console: tokens and password."""

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse
from knox.models import AuthToken
from pytest_django import Settings

from watcher_site.accounts.tokens import end_token, make_token
from watcher_site.console import account
from watcher_site.models import HistoryEntry, TokenDetails

pytestmark = pytest.mark.django_db

ACCOUNT, NEW_TOKEN, PASSWORD = "account:page", "account:new-token", "account:password"
FIELDS = {"name": "night job", "group": "", "read_only": "on", "hours": "2"}
NEW = "something else entirely"
PASSWORDS = {"old_password": "rob-password", "new_password1": NEW, "new_password2": NEW}


@pytest.fixture
def browser(client: Client, reader: User) -> Client:
    client.force_login(reader)
    return client


def text(answer: Any) -> str:
    return str(answer.content.decode())


def status(token: str) -> int:
    return Client().get("/v1/goals", headers={"X-Auth-Token": token}).status_code


@pytest.mark.parametrize("page", [ACCOUNT, NEW_TOKEN, PASSWORD])
def test_login_is_required(client: Client, page: str) -> None:
    assert client.get(reverse(page))["Location"].startswith(reverse("login"))


def test_account_without_permissions_has_its_page(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    assert client.get(reverse(ACCOUNT)).status_code == 200


def test_password_change_is_offered_only_to_accounts_with_a_password(client: Client, reader: User) -> None:
    shown = []
    for user in (reader, User.objects.create_user("by-openid")):
        client.force_login(user)
        shown.append(reverse("account:password") in client.get(reverse("account:page")).content.decode())
    assert shown == [True, False]


def test_new_token_is_shown_once_and_not_cached(browser: Client) -> None:
    answer = browser.post(reverse(NEW_TOKEN), FIELDS, follow=True)
    token = answer.context["secret"]
    assert answer["Cache-Control"] == "no-store"
    assert status(token) == 200
    later = text(browser.get(reverse(ACCOUNT)))
    assert token[:15] in later
    assert token not in later


def test_reload_of_the_secret_page_neither_shows_nor_creates_a_token(browser: Client) -> None:
    answer = browser.post(reverse(NEW_TOKEN), FIELDS)
    assert answer["Location"] == reverse("account:secret")
    token = browser.get(answer["Location"]).context["secret"]
    again = text(browser.get(answer["Location"]))
    assert token not in again
    assert "The secret was shown already." in again
    assert TokenDetails.objects.count() == 1


def test_token_is_neither_logged_nor_in_history(browser: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token = browser.post(reverse(NEW_TOKEN), FIELDS, follow=True).context["secret"]
    assert token not in caplog.text
    assert token not in str(list(HistoryEntry.objects.values()))


def test_form_sets_the_limits_of_the_token(browser: Client) -> None:
    browser.post(reverse(NEW_TOKEN), FIELDS | {"group": "reader"})
    details = TokenDetails.objects.get()
    assert (details.name, details.read_only, details.group) == ("night job", True, "reader")
    assert details.token.expiry - details.token.created < timedelta(hours=2.1)


@pytest.mark.parametrize(
    ("field", "value"),
    [("group", "cloud-admin"), ("hours", "0"), ("hours", "nan"), ("hours", "1e12"), ("name", "a\nb"), ("name", "")],
)
def test_invalid_value_is_reported_at_its_field(browser: Client, field: str, value: str) -> None:
    answer = browser.post(reverse(NEW_TOKEN), FIELDS | {field: value})
    assert list(answer.context["form"].errors) == [field]
    assert not AuthToken.objects.exists()


def test_page_lists_only_the_valid_tokens_of_the_account(browser: Client, reader: User, cloud_admin: User) -> None:
    mine, others = make_token(reader)[0], make_token(cloud_admin)[0]
    expired, _ = AuthToken.objects.create(reader, expiry=timedelta(seconds=-1))
    page = text(browser.get(reverse(ACCOUNT)))
    assert [token.token_key in page for token in (mine, others, expired)] == [True, False, False]


def test_token_is_revoked_after_confirmation(browser: Client, reader: User) -> None:
    made, token = make_token(reader)
    page = reverse("account:revoke-token", args=[made.token_key])
    assert "Revoke this token?" in text(browser.get(page))
    assert status(token) == 200
    browser.post(page)
    assert status(token) == 401


def test_token_that_was_revoked_at_the_same_time_is_reported(
    browser: Client, reader: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _ = make_token(reader)

    def revoke_twice(token: AuthToken) -> None:
        AuthToken.objects.filter(pk=token.pk).delete()
        end_token(token)

    monkeypatch.setattr(account, "end_token", revoke_twice)
    page = browser.post(reverse("account:revoke-token", args=[made.token_key]), follow=True)
    assert "Cannot revoke the token: it was deleted." in text(page)


def test_token_of_another_account_cannot_be_revoked(browser: Client, cloud_admin: User) -> None:
    made, token = make_token(cloud_admin)
    assert browser.post(reverse("account:revoke-token", args=[made.token_key])).status_code == 404
    assert status(token) == 200


@pytest.mark.parametrize("page", [NEW_TOKEN, PASSWORD])
def test_form_without_a_csrf_token_is_refused(reader: User, page: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(reader)
    assert client.post(reverse(page), FIELDS | PASSWORDS).status_code == 403
    assert not AuthToken.objects.exists()


@pytest.mark.parametrize("count", [1, 20])
def test_page_query_count_does_not_depend_on_the_number_of_tokens(
    browser: Client, reader: User, count: int, django_assert_num_queries: Any
) -> None:
    for _ in range(count):
        make_token(reader)
    browser.get(reverse(ACCOUNT))
    with django_assert_num_queries(5):  # the session, the person, the tokens, the groups
        browser.get(reverse(ACCOUNT))


# The password.


def test_password_change_revokes_the_tokens_and_ends_the_other_sessions(browser: Client, reader: User) -> None:
    other = Client()
    other.force_login(reader)
    _, token = make_token(reader)
    answer = browser.post(reverse(PASSWORD), PASSWORDS, follow=True)
    assert "Your password was changed" in text(answer)
    assert browser.get(reverse(ACCOUNT)).status_code == 200
    assert other.get(reverse(ACCOUNT)).status_code == 302
    assert status(token) == 401
    assert User.objects.get(pk=reader.pk).check_password(NEW)
    assert [entry.object_name for entry in HistoryEntry.objects.filter(deed="user.change_password")] == ["rob"]


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("old_password", {"old_password": "wrong"}),
        ("new_password2", {"new_password1": "12345678", "new_password2": "12345678"}),
        ("new_password2", {"new_password2": "another one"}),
        ("new_password1", {"new_password1": "rob-password", "new_password2": "rob-password"}),
    ],
)
def test_invalid_password_changes_nothing(browser: Client, reader: User, field: str, values: dict[str, str]) -> None:
    answer = browser.post(reverse(PASSWORD), PASSWORDS | values)
    assert list(answer.context["form"].errors) == [field]
    assert User.objects.get(pk=reader.pk).check_password("rob-password")


def test_password_form_announces_the_revocation_of_tokens(browser: Client) -> None:
    assert "All your tokens are revoked" in text(browser.get(reverse(PASSWORD)))


def test_wrong_old_passwords_are_limited(browser: Client, reader: User, settings: Settings) -> None:
    settings.MOST_FAILED_LOGINS = 2
    for _ in range(2):
        browser.post(reverse(PASSWORD), PASSWORDS | {"old_password": "wrong"})
    answer = browser.post(reverse(PASSWORD), PASSWORDS)
    assert (answer.status_code, "Retry-After" in answer) == (429, True)
    assert User.objects.get(pk=reader.pk).check_password("rob-password")


def test_typed_password_is_neither_shown_nor_in_history(browser: Client) -> None:
    answer = browser.post(reverse(PASSWORD), PASSWORDS | {"new_password2": "another one"})
    assert NEW not in text(answer)
    assert NEW not in str(list(HistoryEntry.objects.values()))


def test_superuser_can_limit_a_token_to_any_group(client: Client) -> None:
    root = User.objects.create_superuser("root", password="root-password")
    client.force_login(root)
    choices = client.get(reverse(NEW_TOKEN)).context["form"].fields["group"].choices
    assert [name for name, _ in choices] == ["", *sorted(Group.objects.values_list("name", flat=True))]
