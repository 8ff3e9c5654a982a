"""The commands `manage.py users` and `manage.py tokens`."""

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries, Settings

from tests.command_runs import Run, run

__all__ = ["run"]
PASSWORD = "correct-horse-battery"


@pytest.fixture
def bob(run: Run, settings: Settings) -> User:
    settings.USER_PASSWORD = PASSWORD
    assert run("users", "create", "bob", "--group", "reader", "--project", "shop").status == 0
    return User.objects.get()


@pytest.mark.usefixtures("bob")
def test_account_is_created_changed_and_shown(run: Run) -> None:
    assert run("users", "change", "bob", "--add-project", "lab", "--disable").status == 0
    shown = run("users", "show", "bob", "--format", "json").json
    expected = {"username": "bob", "enabled": False, "groups": ["reader"], "projects": ["lab", "shop"]}
    assert {name: shown[name] for name in expected} == expected
    assert "bob       false    false      reader  lab shop" in run("users", "list").output


@pytest.mark.usefixtures("bob")
def test_accounts_are_filtered_by_group_and_state(run: Run) -> None:
    User.objects.create_user("alice")
    assert run("users", "list", "--group", "reader", "--columns", "username").output == "USERNAME\nbob\n"
    assert run("users", "list", "--group", "nosuch").status == 2
    assert run("users", "list", "--enabled", "false", "--columns", "username").output == "USERNAME\n"


def test_list_query_count_does_not_depend_on_the_number_of_accounts(
    run: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for name in ("alice", "bob"):
        User.objects.create_user(name)
        with django_assert_num_queries(3):
            run("users", "list")


def test_list_beyond_the_page_limit_is_complete(run: Run, settings: Settings) -> None:
    settings.API_MAX_LIMIT = 1
    for name in ("carol", "alice", "bob"):
        User.objects.create_user(name)
    assert run("users", "list", "--sort", "username", "--columns", "username").output.split()[1:] == [
        "alice",
        "bob",
        "carol",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "nosuch"],
        ["change", "nosuch", "--enable"],
        ["change", "bob"],
        ["create", "bob", "--group", "reader"],
        ["create", "carol", "--group", "nosuch"],
        ["list", "--enabled", "perhaps"],
    ],
    ids=str,
)
@pytest.mark.usefixtures("bob")
def test_invalid_request_is_one_line_with_status_2(run: Run, arguments: list[str]) -> None:
    ended = run("users", *arguments)
    assert (ended.status, ended.output, ended.errors.count("\n")) == (2, "", 1)


@pytest.mark.usefixtures("bob")
def test_token_is_created_listed_and_revoked(run: Run) -> None:
    token = run("tokens", "create", "bob", "--name", "ci").output.strip()
    (listed,) = run("tokens", "list", "--user", "bob", "--format", "json").json
    assert (listed["name"], token.startswith(listed["id"])) == ("ci", True)
    assert run("tokens", "revoke", listed["id"]).status == 2
    assert run("tokens", "revoke", listed["id"], "--yes").status == 0
    assert run("tokens", "revoke", listed["id"], "--yes").status == 2
    assert run("tokens", "list", "--format", "json").json == []


@pytest.mark.parametrize("arguments", [[], ["abc"], ["abcdef", "--user", "bob"]], ids=str)
def test_invalid_revocation_is_one_line_with_status_2(run: Run, arguments: list[str]) -> None:
    ended = run("tokens", "revoke", *arguments, "--yes")
    assert (ended.status, ended.errors.count("\n")) == (2, 1)
