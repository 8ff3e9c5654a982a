"""`create_user` creates an account with the permissions of a predefined group."""

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from pytest_django import Settings

from tests.api import Caller
from watcher_site.management.commands.create_user import Command

pytestmark = pytest.mark.django_db


def create(*arguments: str) -> str:
    printed = StringIO()
    call_command("create_user", *arguments, stdout=printed)
    return printed.getvalue()


def test_printed_password_logs_in() -> None:
    password = create("rosa", "--group", "reader").split("password ")[1].split()[0]
    assert User.objects.get(username="rosa").check_password(password)


def test_printed_password_is_alphanumeric() -> None:
    assert create("rosa", "--group", "reader").split("password ")[1].split()[0].isalnum()


def test_configured_password_is_used_and_not_printed(settings: Settings) -> None:
    settings.USER_PASSWORD = "chosen by the operator"
    assert settings.USER_PASSWORD not in create("rosa", "--group", "reader")
    assert User.objects.get(username="rosa").check_password("chosen by the operator")


@pytest.mark.parametrize(("group", "status"), [("reader", 403), ("cloud-admin", 201)])
def test_group_determines_the_permissions_of_the_account(group: str, status: int) -> None:
    create("rosa", "--group", group)
    rosa = Caller(User.objects.get(username="rosa"))
    assert rosa.get("/audits").status_code == 200
    assert rosa.post("/audits", {"audit_type": "ONESHOT", "goal": "dummy"}).status_code == status


@pytest.mark.parametrize(
    ("password", "rule"), [("x", "too short"), ("password1", "too common"), ("rosa-maria", "similar")]
)
def test_password_that_breaks_a_rule_is_refused(settings: Settings, password: str, rule: str) -> None:
    settings.USER_PASSWORD = password
    with pytest.raises(CommandError, match=f"WATCHER_USER_PASSWORD: .*{rule}"):
        create("rosa-maria", "--group", "reader")
    assert not User.objects.exists()


@pytest.mark.parametrize("name", ["", "two words", "x" * 151])
def test_name_that_breaks_a_rule_is_refused(name: str) -> None:
    with pytest.raises(CommandError, match=r"^name: "):
        create(name, "--group", "reader")


def test_name_of_an_existing_user_is_refused() -> None:
    create("rosa", "--group", "reader")
    with pytest.raises(CommandError, match="name: there is a user rosa already"):
        create("rosa", "--group", "cloud-admin")


@pytest.mark.parametrize("arguments", [[], ["--group", "owner"], ["--group"]])
def test_missing_or_unknown_group_is_one_line_with_status_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        Command().run_from_argv(["manage.py", "create_user", "rosa", *arguments])
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert "--group" in printed
