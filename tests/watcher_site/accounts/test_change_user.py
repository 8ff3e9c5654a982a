"""`change_user` changes groups, projects and the state of an account, and `list_users` prints the accounts."""

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.conftest import person
from tests.watcher_site.site_process import run
from watcher_site.accounts.projects import add_member, projects_of
from watcher_site.accounts.tokens import make_token, valid_tokens
from watcher_site.models import ExternalIdentity, HistoryEntry

pytestmark = pytest.mark.django_db


def command(*arguments: str) -> str:
    printed = StringIO()
    call_command(*arguments, stdout=printed)
    return printed.getvalue()


def groups_of(user: User) -> set[str]:
    return set(user.groups.values_list("name", flat=True))


def test_groups_and_projects_are_added_and_removed(reader: User) -> None:
    add_member("rob", "old")
    given = ["--add-group", "member", "--remove-group", "reader", "--add-project", "shop", "--remove-project", "old"]
    assert command("change_user", "rob", *given) == "user rob: enabled, groups member, projects shop\n"
    assert (groups_of(reader), projects_of(reader)) == ({"member"}, {"shop"})


def test_disabling_an_account_revokes_its_tokens(reader: User) -> None:
    make_token(reader)
    assert command("change_user", "rob", "--disable") == "user rob: disabled, groups reader, projects none\n"
    assert not User.objects.get().is_active
    assert not valid_tokens().exists()
    assert command("change_user", "rob", "--enable").startswith("user rob: enabled")


def test_change_is_all_or_nothing(reader: User) -> None:
    with pytest.raises(CommandError, match="rob is not a member of gone"):
        command("change_user", "rob", "--add-group", "member", "--remove-project", "gone", "--disable")
    assert (groups_of(reader), User.objects.get().is_active) == ({"reader"}, True)


def test_history_records_the_changes(reader: User) -> None:
    command("change_user", "rob", "--add-group", "member", "--disable")
    assert set(HistoryEntry.objects.values_list("deed", flat=True)) >= {"user.set_groups", "user.disable"}


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (["nobody", "--disable"], "there is no user nobody"),
        (["rob"], "give at least one change"),
        (["rob", "--add-group", "wheel"], "there is no group wheel"),
        (["rob", "--remove-group", "member"], "rob is not in the group member"),
        (["rob", "--add-group", "member", "--remove-group", "member"], "member cannot be added and removed at once"),
        (["rob", "--add-project", " "], "project: must have 1 to 255 characters"),
        (["rob", "--enable", "--disable"], "not allowed with argument"),
    ],
)
def test_invalid_change_is_refused(reader: User, given: list[str], fault: str) -> None:
    with pytest.raises(CommandError, match=fault):
        command("change_user", *given)
    assert groups_of(reader) == {"reader"}


def test_list_shows_groups_projects_and_last_login_of_each_account(reader: User, stranger: User) -> None:
    add_member("sam", "shop")
    stranger.is_active = False
    stranger.save()
    ExternalIdentity.objects.create(user=stranger, issuer="https://login.example.org", subject="1")
    assert command("list_users").splitlines() == [
        "rob  enabled  groups reader  projects none  no login yet",
        "sam  disabled  groups none  projects shop  logs in at https://login.example.org  no login yet",
    ]


def test_list_is_filtered_by_group(reader: User, stranger: User) -> None:
    assert [line.split()[0] for line in command("list_users", "--group", "reader").splitlines()] == ["rob"]
    with pytest.raises(CommandError, match="there is no group wheel"):
        command("list_users", "--group", "wheel")


def test_list_query_count_does_not_depend_on_the_number_of_accounts() -> None:
    numbers = []
    for names in (["a"], ["b", "c", "d"]):
        for name in names:
            person(name, "reader")
        with CaptureQueriesContext(connection) as queries:
            command("list_users")
        numbers.append(len(queries))
    assert numbers == [3, 3]


def test_error_of_the_command_line_is_one_line_with_status_2() -> None:
    ended = run("manage.py", "change_user", "nobody")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
