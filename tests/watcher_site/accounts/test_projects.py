"""Who is a member of which project, as the commands have it."""

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from watcher_site.accounts.projects import projects_of

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    printed = StringIO()
    call_command(*arguments, stdout=printed)
    return printed.getvalue().strip()


@pytest.fixture
def ines() -> User:
    return User.objects.create_user("ines")


def test_a_member_that_is_added_belongs_to_the_project(ines: User) -> None:
    assert run("add_project_member", "ines", "p1") == "user ines is now a member of project p1"
    assert projects_of(ines) == {"p1"}


def test_a_member_may_be_added_twice(ines: User) -> None:
    run("add_project_member", "ines", "p1")
    assert run("add_project_member", "ines", "p1") == "user ines is already a member of project p1"
    assert projects_of(ines) == {"p1"}


def test_a_member_that_is_removed_keeps_the_other_projects(ines: User) -> None:
    run("add_project_member", "ines", "p1")
    run("add_project_member", "ines", "p2")
    run("remove_project_member", "ines", "p1")
    assert projects_of(ines) == {"p2"}


def test_who_is_no_member_cannot_be_removed(ines: User) -> None:
    with pytest.raises(CommandError, match=r"^project: ines is no member of p1\.$"):
        run("remove_project_member", "ines", "p1")


@pytest.mark.parametrize("command", ["add_project_member", "remove_project_member"])
def test_a_person_who_is_unknown_is_refused(command: str) -> None:
    with pytest.raises(CommandError, match=r"^user: there is no user nobody\.$"):
        run(command, "nobody", "p1")


@pytest.mark.parametrize("project", ["p\u202e1", "p\n1", "p\t1"])
def test_an_id_with_characters_that_nobody_sees_is_refused(ines: User, project: str) -> None:
    with pytest.raises(CommandError, match=r"^project: must hold no control or format characters"):
        run("add_project_member", "ines", project)
    assert not projects_of(ines)


@pytest.mark.parametrize("project", ["", " ", " p1", "x" * 256])
def test_an_id_that_no_project_can_have_is_refused(ines: User, project: str) -> None:
    with pytest.raises(CommandError, match=r"^project: must have"):
        run("add_project_member", "ines", project)
    assert not projects_of(ines)


def test_an_account_is_made_as_a_member_of_projects() -> None:
    run("create_user", "rosa", "--group", "member", "--project", "p1", "--project", "p2")
    rosa = User.objects.get(username="rosa")
    assert projects_of(rosa) == {"p1", "p2"}
    assert not rosa.get_all_permissions()


def test_an_account_whose_project_is_refused_is_not_made() -> None:
    with pytest.raises(CommandError, match=r"^project: "):
        run("create_user", "rosa", "--group", "member", "--project", "")
    assert not User.objects.exists()
