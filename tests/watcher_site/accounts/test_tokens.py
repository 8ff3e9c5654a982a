"""The list of tokens, and their revocation by command, by a password change and with a disabled account."""

from collections.abc import Callable
from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from knox.models import AuthToken
from pytest_django import Settings

from tests.watcher_site.site_process import run
from watcher_site.models import HistoryEntry
from watcher_site.processes.commands import caller
from watcher_site.request_context import on_behalf_of

pytestmark = pytest.mark.django_db

NEW = "something else entirely"


@pytest.fixture
def token(cloud_admin: User) -> str:
    return str(AuthToken.objects.create(cloud_admin)[1])


def command(*arguments: str) -> str:
    printed = StringIO()
    call_command(*arguments, stdout=printed)
    return printed.getvalue()


def status(token: str) -> int:
    return Client().get("/v1/goals", headers={"X-Auth-Token": token}).status_code


def entries(event: str) -> list[HistoryEntry]:
    return list(HistoryEntry.objects.filter(deed=event))


def change_by_form(user: User) -> None:
    form = SetPasswordForm(user, {"new_password1": NEW, "new_password2": NEW})
    assert form.is_valid()
    form.save()


def change_and_save(user: User) -> None:
    user.set_password(NEW)
    user.save()


def change_and_save_field(user: User) -> None:
    user.set_password(NEW)
    user.save(update_fields=["password"])


def make_unusable(user: User) -> None:
    user.set_unusable_password()
    user.save()


@pytest.mark.parametrize("change", [change_by_form, change_and_save, change_and_save_field, make_unusable])
def test_password_change_revokes_the_tokens_of_its_account(
    cloud_admin: User, reader: User, token: str, change: Callable[[User], None]
) -> None:
    _, others = AuthToken.objects.create(reader)
    assert status(token) == 200
    change(cloud_admin)
    assert (status(token), status(others)) == (401, 200)


def test_changepassword_revokes_the_tokens(cloud_admin: User, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getpass", lambda prompt: NEW)
    assert command("changepassword", "alice") == "Password changed successfully for user 'alice'\n"
    assert status(token) == 401
    assert User.objects.get(username="alice").check_password(NEW)
    assert [entry.object_name for entry in entries("user.change_password")] == ["alice"]


def test_mismatched_passwords_change_nothing(cloud_admin: User, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getpass", lambda prompt: prompt)
    with pytest.raises(CommandError, match="password: the two do not match"):
        command("changepassword", "alice")
    assert status(token) == 200


def test_weak_password_changes_nothing(cloud_admin: User, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getpass", lambda prompt: "12345678")
    with pytest.raises(CommandError, match=r"password: .*too common"):
        command("changepassword", "alice")
    assert status(token) == 200


def test_rehash_of_a_password_at_login_revokes_no_token(cloud_admin: User, token: str, settings: Settings) -> None:
    before = cloud_admin.password
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.ScryptPasswordHasher", *settings.PASSWORD_HASHERS]
    assert Client().login(username="alice", password="alice-password")
    assert User.objects.get(pk=cloud_admin.pk).password != before
    assert status(token) == 200


def test_change_of_another_account_field_revokes_no_token(cloud_admin: User, token: str) -> None:
    user = User.objects.get(pk=cloud_admin.pk)
    user.first_name = "Alice"
    user.save()
    assert status(token) == 200


def test_change_of_an_account_without_a_password_revokes_no_token() -> None:
    account = User.objects.create_user("automation")
    AuthToken.objects.create(account)
    account = User.objects.get(pk=account.pk)
    account.email = "automation@example.org"
    account.save()
    assert AuthToken.objects.count() == 1


def test_history_records_the_number_and_the_reason_of_revoked_tokens(cloud_admin: User, token: str) -> None:
    with on_behalf_of(lambda: caller("rosa")):
        change_and_save(cloud_admin)
    (entry,) = entries("token.revoke")
    assert (entry.user, entry.object_name, entry.details) == ("rosa", "alice", {"number": 1})
    assert entry.message == "The password was changed."


def test_disabled_account_is_refused_and_its_tokens_are_deleted(cloud_admin: User, token: str) -> None:
    assert command("disable_user", "alice") == "user alice is now disabled\n"
    assert status(token) == 401
    assert not Client().login(username="alice", password="alice-password")
    assert command("enable_user", "alice") == "user alice is now enabled\n"
    assert status(token) == 401
    assert Client().login(username="alice", password="alice-password")


def test_history_records_disabling_and_enabling_once(cloud_admin: User) -> None:
    for name in ("disable_user", "disable_user", "enable_user", "enable_user"):
        command(name, "alice")
    assert [len(entries("user.disable")), len(entries("user.enable"))] == [1, 1]
    assert command("enable_user", "alice") == "user alice is already enabled\n"


def test_valid_tokens_are_listed_by_their_prefix(cloud_admin: User, reader: User, token: str) -> None:
    AuthToken.objects.create(reader, expiry=None)
    AuthToken.objects.create(reader, expiry=timedelta(seconds=-1))
    lines = command("list_tokens").splitlines()
    robs = AuthToken.objects.get(expiry=None)
    assert [line.split()[:2] for line in lines] == [[token[:15], "alice"], [robs.token_key, "rob"]]
    assert lines[0].count(" UTC") == 2
    assert lines[1].endswith("valid for ever")
    assert token not in "".join(lines)


def test_list_is_filtered_by_user(cloud_admin: User, reader: User, token: str) -> None:
    AuthToken.objects.create(reader)
    assert command("list_tokens", "alice").count("\n") == 1


@pytest.mark.parametrize("length", [8, 15, 64])
def test_token_is_revoked_by_its_prefix(cloud_admin: User, token: str, length: int) -> None:
    _, other = AuthToken.objects.create(cloud_admin)
    assert command("revoke_token", token[:length]) == f"token {token[:15]} of alice revoked\n"
    assert (status(token), status(other)) == (401, 200)
    (entry,) = entries("token.revoke")
    assert (entry.object_name, entry.details) == ("alice", {"key": token[:15]})


def test_all_tokens_of_a_user_are_revoked(cloud_admin: User, reader: User, token: str) -> None:
    _, others = AuthToken.objects.create(reader)
    assert command("revoke_token", "--user", "alice") == "1 token of alice revoked\n"
    assert (status(token), status(others)) == (401, 200)
    assert entries("token.revoke")[0].details == {"number": 1}


def test_ambiguous_token_prefix_revokes_no_token(cloud_admin: User) -> None:
    AuthToken.objects.create(cloud_admin)
    AuthToken.objects.create(cloud_admin)
    for number, made in enumerate(AuthToken.objects.all()):
        AuthToken.objects.filter(pk=made.pk).update(token_key=f"abcdef{number}")
    with pytest.raises(CommandError, match="several tokens begin so"):
        command("revoke_token", "abcdef")
    assert AuthToken.objects.count() == 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["revoke_token", "0123456789"], "no valid token begins so"),
        (["revoke_token", "0"], "at least 6 characters"),
        (["revoke_token"], "either how one token begins"),
        (["revoke_token", "0123456789", "--user", "alice"], "either how one token begins"),
        (["revoke_token", "--user", "nobody"], "nobody"),
        (["list_tokens", "nobody"], "nobody"),
        (["disable_user", "nobody"], "nobody"),
        (["enable_user", "nobody"], "nobody"),
        (["changepassword", "nobody"], "nobody"),
    ],
)
def test_invalid_arguments_are_refused(cloud_admin: User, arguments: list[str], reason: str) -> None:
    with pytest.raises(CommandError, match=reason) as refused:
        command(*arguments)
    assert refused.value.returncode == 2


def test_invalid_arguments_are_one_line_with_status_2() -> None:
    ended = run("manage.py", "revoke_token", "0")
    assert (ended.returncode, ended.stderr.count("\n"), ended.stdout) == (2, 1, "")
