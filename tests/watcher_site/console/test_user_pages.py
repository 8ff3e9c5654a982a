"""The console's administration of accounts."""

import logging
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from watcher_site.accounts.projects import add_member, projects_of
from watcher_site.accounts.tokens import make_token
from watcher_site.accounts.users import set_active
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db

FIELDS = {"name": "ines", "group": "member", "project": "blue"}


@pytest.fixture
def browser(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


@pytest.fixture
def manager(db: None) -> Client:
    """Return the client of a reader who may also manage users."""
    manager = User.objects.create_user("mona", password="mona-password")
    manager.groups.add(Group.objects.get(name="reader"))
    manager.user_permissions.add(Permission.objects.get(codename="manage_users"))
    client = Client()
    client.force_login(manager)
    return client


def text(answer: Any) -> str:
    return str(answer.content.decode())


def page(name: str, user: User, *more: str) -> str:
    return reverse(f"users:{name}", args=[user.pk, *more])


def fresh(user: User) -> User:
    return User.objects.get(pk=user.pk)


def events() -> list[tuple[str, str, str]]:
    return list(HistoryEntry.objects.order_by("pk").values_list("deed", "object_name", "outcome"))


VERBS = ["enable", "disable", "password", "groups", "add-project", "remove-project"]


@pytest.mark.parametrize("name", ["detail", *VERBS])
@pytest.mark.parametrize("method", ["get", "post"])
def test_every_page_requires_the_permission(
    client: Client, reader: User, stranger: User, name: str, method: str
) -> None:
    client.force_login(reader)
    assert getattr(client, method)(page(name, stranger)).status_code == 403
    assert fresh(stranger).check_password("sam-password")


@pytest.mark.parametrize("name", ["users:list", "users:new"])
def test_list_and_creation_form_require_the_permission(client: Client, reader: User, name: str) -> None:
    client.force_login(reader)
    assert client.get(reverse(name)).status_code == 403


def test_reader_sees_no_link_to_users(client: Client, reader: User) -> None:
    client.force_login(reader)
    assert reverse("users:list") not in text(client.get(reverse("account:page")))


def test_account_page_links_to_users_with_the_permission(browser: Client) -> None:
    assert reverse("users:list") in text(browser.get(reverse("account:page")))


def test_list_shows_groups_projects_and_disabled_accounts(browser: Client, reader: User) -> None:
    add_member("rob", "blue")
    set_active("rob", False)
    shown = text(browser.get(reverse("users:list"), {"name": "RO"}))
    assert all(word in shown for word in ("rob", "reader", "blue", "disabled"))
    assert "alice</a></div>" not in shown


@pytest.mark.parametrize("count", [1, 20])
def test_list_query_count_does_not_depend_on_the_number_of_accounts(
    browser: Client, count: int, django_assert_num_queries: Any
) -> None:
    for number in range(count):
        user = User.objects.create(username=f"user{number}")
        user.groups.add(Group.objects.get(name="reader"))
        add_member(user.username, "blue")
    browser.get(reverse("users:list"))
    # the session, the person, saved filters, the choices of groups, the number of accounts, these, groups, projects
    with django_assert_num_queries(8):
        browser.get(reverse("users:list"))


@pytest.mark.parametrize("count", [1, 20])
def test_account_page_query_count_does_not_depend_on_the_content(
    browser: Client, reader: User, count: int, django_assert_num_queries: Any
) -> None:
    for number in range(count):
        add_member("rob", f"project{number}")
        make_token(reader)
    browser.get(page("detail", reader))
    # the session, the person, the account, its rights, its groups, its projects, its tokens, the choices of groups
    with django_assert_num_queries(8):
        browser.get(page("detail", reader))


def test_password_of_a_new_account_is_shown_once(browser: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    answer = browser.post(reverse("users:new"), FIELDS, follow=True)
    password = answer.context["secret"]
    ines = User.objects.get(username="ines")
    assert answer["Cache-Control"] == "no-store"
    assert ines.check_password(password)
    assert (list(ines.groups.values_list("name", flat=True)), projects_of(ines)) == (["member"], {"blue"})
    assert password not in text(browser.get(page("detail", ines))) + caplog.text
    assert password not in str(list(HistoryEntry.objects.values()))
    assert ("user.create", "ines", "success") in events()


@pytest.mark.parametrize(
    ("field", "value"), [("name", "alice"), ("name", "a b"), ("group", "no-such"), ("project", " blue")]
)
def test_invalid_new_account_is_not_created(browser: Client, field: str, value: str) -> None:
    answer = browser.post(reverse("users:new"), FIELDS | {field: value})
    assert list(answer.context["form"].errors) == [field]
    assert not User.objects.filter(username="ines").exists()


def test_error_at_a_field_is_capitalized(browser: Client) -> None:
    answer = browser.post(reverse("users:new"), FIELDS | {"name": "alice"})
    assert answer.context["form"].errors == {"name": ["There is a user alice already."]}


def test_account_is_disabled_after_confirmation_and_enabled(browser: Client, reader: User) -> None:
    assert "Disable this account?" in text(browser.get(page("disable", reader)))
    assert fresh(reader).is_active
    browser.post(page("disable", reader))
    assert not fresh(reader).is_active
    browser.post(page("enable", reader))
    assert fresh(reader).is_active
    assert events() == [("user.disable", "rob", "success"), ("user.enable", "rob", "success")]


def test_reset_password_is_shown_once_and_ends_sessions_and_tokens(browser: Client, reader: User) -> None:
    other = Client()
    other.force_login(reader)
    _, token = make_token(reader)
    answer = browser.post(page("password", reader), follow=True)
    assert answer["Cache-Control"] == "no-store"
    assert fresh(reader).check_password(answer.context["secret"])
    assert other.get(reverse("account:page")).status_code == 302
    assert Client().get("/v1/goals", headers={"X-Auth-Token": token}).status_code == 401
    assert answer.context["secret"] not in text(browser.get(page("detail", reader)))


def test_groups_of_an_account_are_changed_and_recorded(browser: Client, reader: User) -> None:
    member = Group.objects.get(name="member")
    browser.post(page("groups", reader), {"groups": [member.pk]})
    assert list(fresh(reader).groups.all()) == [member]
    entry = HistoryEntry.objects.get(deed="user.set_groups")
    assert (entry.user, entry.details) == ("alice", {"groups": {"from": ["reader"], "to": ["member"]}})


@pytest.mark.parametrize("groups", [["0"], ["x"], ["\0"]])
def test_missing_groups_change_nothing(browser: Client, reader: User, groups: list[str]) -> None:
    answer = browser.post(page("groups", reader), {"groups": groups}, follow=True)
    assert "choose groups of the list" in text(answer)
    assert fresh(reader).groups.get().name == "reader"


def test_projects_are_added_and_removed(browser: Client, reader: User) -> None:
    browser.post(page("add-project", reader), {"project": "blue"})
    assert projects_of(reader) == {"blue"}
    browser.post(page("remove-project", reader), {"project": "blue"})
    assert projects_of(reader) == frozenset()
    assert [event for event, *_ in events()] == ["project.add_member", "project.remove_member"]


@pytest.mark.parametrize("project", ["", " ", "\0", "a" * 256])
def test_invalid_project_is_refused(browser: Client, reader: User, project: str) -> None:
    answer = browser.post(page("add-project", reader), {"project": project}, follow=True)
    assert (answer.status_code, projects_of(reader)) == (200, frozenset())
    assert "project: " in text(answer)


def test_token_of_another_account_is_revoked(browser: Client, reader: User) -> None:
    made, token = make_token(reader)
    assert made.token_key in text(browser.get(page("detail", reader)))
    browser.post(page("revoke-token", reader, made.token_key))
    assert Client().get("/v1/goals", headers={"X-Auth-Token": token}).status_code == 401


# User managers cannot gain permissions through other accounts.


@pytest.mark.parametrize("name", ["disable", "password", "groups", "add-project"])
def test_change_of_an_account_with_more_permissions_is_refused(manager: Client, cloud_admin: User, name: str) -> None:
    answer = manager.post(page(name, cloud_admin), {"project": "blue"}, follow=True)
    assert "rights that you do not have" in text(answer)
    user = fresh(cloud_admin)
    assert (user.is_active, user.check_password("alice-password"), user.groups.count()) == (True, True, 1)
    assert projects_of(user) == frozenset()
    assert [outcome for *_, outcome in events()] == ["refused"]


def test_change_of_a_disabled_account_with_more_permissions_is_refused(manager: Client, cloud_admin: User) -> None:
    User.objects.filter(pk=cloud_admin.pk).update(is_active=False)
    manager.post(page("enable", cloud_admin))
    manager.post(page("password", cloud_admin))
    user = fresh(cloud_admin)
    assert (user.is_active, user.check_password("alice-password")) == (False, True)


def test_superuser_can_be_changed_only_by_superusers(browser: Client) -> None:
    root = User.objects.create_superuser("root", password="root-password")
    browser.post(page("password", root))
    assert fresh(root).check_password("root-password")
    other = User.objects.create_superuser("other", password="other-password")
    browser.force_login(other)
    browser.post(page("password", root))
    assert not fresh(root).check_password("root-password")


def test_page_of_an_account_with_more_permissions_has_no_buttons(manager: Client, cloud_admin: User) -> None:
    make_token(cloud_admin)
    shown = text(manager.get(page("detail", cloud_admin)))
    assert "This account has rights that you do not have" in shown
    assert not any(page(name, cloud_admin) in shown for name in VERBS)
    assert "Revoke" not in shown


def test_page_of_the_own_account_has_no_buttons(browser: Client, cloud_admin: User) -> None:
    shown = text(browser.get(page("detail", cloud_admin)))
    assert "Your own account is administered by another person." in shown
    assert not any(page(name, cloud_admin) in shown for name in VERBS)


def test_group_of_a_new_account_has_no_default(browser: Client) -> None:
    assert '<option value="" selected>Choose a group</option>' in text(browser.get(reverse("users:new")))
    answer = browser.post(reverse("users:new"), FIELDS | {"group": ""})
    assert list(answer.context["form"].errors) == ["group"]


def test_group_with_more_permissions_cannot_be_assigned(manager: Client, stranger: User) -> None:
    manager.post(page("groups", stranger), {"groups": [Group.objects.get(name="cloud-admin").pk]})
    answer = manager.post(reverse("users:new"), FIELDS | {"group": "cloud-admin"})
    assert "rights that you do not have" in text(answer)
    assert not Group.objects.get(name="cloud-admin").user_set.exists()


def test_user_manager_can_assign_own_permissions(manager: Client, stranger: User) -> None:
    manager.post(page("groups", stranger), {"groups": [Group.objects.get(name="reader").pk]})
    assert fresh(stranger).groups.get().name == "reader"


def test_token_of_an_account_with_more_permissions_is_not_revoked(manager: Client, cloud_admin: User) -> None:
    made, token = make_token(cloud_admin)
    manager.post(page("revoke-token", cloud_admin, made.token_key))
    assert Client().get("/v1/goals", headers={"X-Auth-Token": token}).status_code == 200


@pytest.mark.parametrize("name", ["disable", "password", "groups", "add-project"])
def test_change_of_the_own_account_is_refused(browser: Client, cloud_admin: User, name: str) -> None:
    answer = browser.post(page(name, cloud_admin), {"project": "blue"}, follow=True)
    assert "administered by another person" in text(answer)
    user = fresh(cloud_admin)
    assert (user.is_active, user.check_password("alice-password"), user.groups.count()) == (True, True, 1)


@pytest.mark.parametrize("name", VERBS)
def test_form_without_a_csrf_token_is_refused(cloud_admin: User, reader: User, name: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(cloud_admin)
    assert client.post(page(name, reader)).status_code == 403


def test_missing_account_is_404(browser: Client) -> None:
    assert browser.get(reverse("users:detail", args=[10**9])).status_code == 404
    assert browser.get("/console/users/99999999999999999999999/").status_code == 404
