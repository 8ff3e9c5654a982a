"""The commands that add and remove members of projects."""

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from watcher_site.accounts.projects import add_member, projects_of
from watcher_site.refusals import Invalid

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    printed = StringIO()
    call_command(*arguments, stdout=printed)
    return printed.getvalue().strip()


@pytest.fixture
def ines() -> User:
    return User.objects.create_user("ines")


def test_added_member_belongs_to_the_project(ines: User) -> None:
    assert run("add_project_member", "ines", "p1") == "user ines is now a member of project p1"
    assert projects_of(ines) == {"p1"}


def test_adding_a_member_twice_is_accepted(ines: User) -> None:
    run("add_project_member", "ines", "p1")
    assert run("add_project_member", "ines", "p1") == "user ines is already a member of project p1"
    assert projects_of(ines) == {"p1"}


def test_removed_member_keeps_the_other_projects(ines: User) -> None:
    run("add_project_member", "ines", "p1")
    run("add_project_member", "ines", "p2")
    run("remove_project_member", "ines", "p1")
    assert projects_of(ines) == {"p2"}


def test_removing_a_user_who_is_no_member_is_refused(ines: User) -> None:
    with pytest.raises(CommandError, match=r"^project: ines is not a member of p1\.$"):
        run("remove_project_member", "ines", "p1")


@pytest.mark.parametrize("command", ["add_project_member", "remove_project_member"])
def test_unknown_user_is_refused(command: str) -> None:
    with pytest.raises(CommandError, match=r"^user: there is no user nobody\.$"):
        run(command, "nobody", "p1")


@pytest.mark.parametrize("project", ["p\u202e1", "p\n1", "p\t1"])
def test_project_id_with_invisible_characters_is_refused(ines: User, project: str) -> None:
    with pytest.raises(CommandError, match=r"^project: must not contain control or format characters"):
        run("add_project_member", "ines", project)
    assert not projects_of(ines)


@pytest.mark.parametrize("project", ["", " ", " p1", "x" * 256])
def test_invalid_project_id_is_refused(ines: User, project: str) -> None:
    with pytest.raises(Invalid, match=r"^project: must have"):
        add_member("ines", project)
    assert not projects_of(ines)


def test_command_ignores_white_space_around_a_project_id(ines: User) -> None:
    run("add_project_member", "ines", " p1\n")
    assert projects_of(ines) == {"p1"}


def test_account_is_created_as_a_member_of_projects() -> None:
    run("create_user", "rosa", "--group", "member", "--project", "p1", "--project", "p2")
    rosa = User.objects.get(username="rosa")
    assert projects_of(rosa) == {"p1", "p2"}
    assert not rosa.get_all_permissions()


def test_account_is_not_created_when_its_project_is_refused() -> None:
    with pytest.raises(CommandError, match=r"^project: "):
        run("create_user", "rosa", "--group", "member", "--project", "")
    assert not User.objects.exists()
