"""Saved filters of a list: their names, owners, limits and deletion."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tests.builders import make_server
from watcher_site.console.lists.saved_filters import MOST_SAVED
from watcher_site.models import SavedFilter

pytestmark = pytest.mark.django_db
LIST = "cluster:servers"


@pytest.fixture
def browser(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def save(browser: Client, name: str = "web servers", query: str = "name=web", page: str = LIST, **options: Any) -> Any:
    return browser.post(reverse("save-filters"), {"name": name, "query": query, "page": page}, **options)


def show(browser: Client, query: str = "", page: str = LIST) -> str:
    return str(browser.get(f"{reverse(page)}?{query}").content.decode())


def test_saved_filters_are_linked_above_their_list(browser: Client) -> None:
    answer = save(browser, query="name=web&sort=-memory")
    assert answer["Location"] == f"{reverse(LIST)}?name=web&sort=-memory"
    link = f'<a href="{reverse(LIST)}?name=web&amp;sort=-memory"'
    assert link in show(browser)
    assert link not in show(browser, page="clusters:list")


def test_save_form_has_the_current_filters(browser: Client) -> None:
    page = show(browser, "name=web&state=&page=2&per_page=25&x=1")
    assert '<input type="hidden" name="query" value="name=web">' in page
    assert f'<input type="hidden" name="page" value="{LIST}">' in page


def test_list_without_filters_has_no_save_form(browser: Client) -> None:
    assert "saved-filters" not in show(browser, "sort=name")


def test_invalid_filters_cannot_be_saved_from_the_list(browser: Client) -> None:
    assert "Save these filters" not in show(browser, "state=flying")


def test_current_saved_filters_are_marked(browser: Client) -> None:
    save(browser)
    assert show(browser, "name=web").count('aria-current="true"') == 1
    assert 'aria-current="true"' not in show(browser, "name=db")


def test_only_filters_and_the_order_are_saved(browser: Client) -> None:
    save(browser, query="per_page=25&name=web&x=1&page=3&state=&name=db")
    assert SavedFilter.objects.get().query == "name=web&name=db"


def test_saved_filters_of_the_same_name_are_replaced(browser: Client) -> None:
    save(browser)
    save(browser, query="name=db")
    assert [saved.query for saved in SavedFilter.objects.all()] == ["name=db"]


def test_users_see_and_delete_only_their_own_filters(browser: Client, reader: User) -> None:
    save(browser)
    saved, other = SavedFilter.objects.get(), Client()
    other.force_login(reader)
    assert "web servers" not in show(other)
    assert other.post(reverse("delete-filters", args=[saved.pk])).status_code == 404
    answer = browser.post(reverse("delete-filters", args=[saved.pk]), follow=True)
    assert "Saved filters deleted: web servers." in answer.content.decode()
    assert not SavedFilter.objects.exists()


def test_users_can_use_the_same_name(browser: Client, reader: User) -> None:
    save(browser)
    other = Client()
    other.force_login(reader)
    save(other, query="name=db")
    assert "?name=web" in show(browser)
    assert "?name=db" in show(other)


def test_number_of_saved_filters_of_a_list_is_limited(browser: Client) -> None:
    for number in range(MOST_SAVED):
        save(browser, f"filter {number}")
    answer = save(browser, "one more", follow=True)
    assert f"You have {MOST_SAVED} saved filters of this list. Delete one first." in answer.content.decode()
    assert SavedFilter.objects.count() == MOST_SAVED
    save(browser, "filter 3", query="name=db")
    assert SavedFilter.objects.get(name="filter 3").query == "name=db"
    save(browser, page="clusters:list")
    assert SavedFilter.objects.count() == MOST_SAVED + 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": ""}, "Name: This field is required."),
        ({"name": "x" * 101}, "Name: Ensure this value has at most 100 characters"),
        ({"name": "a\0b"}, "Name: Null characters are not allowed."),
        ({"query": ""}, "Filters: Set a filter first."),
        ({"query": "x=1"}, "Filters: Set a filter first."),
        ({"query": "name=" + "x" * 3000}, "Filters: Ensure this value has at most 2000 characters"),
        ({"query": "name=" + "ü" * 1000}, "Filters: Ensure this value has at most 2000 characters"),
    ],
    ids=["no-name", "long-name", "nul", "nothing", "no-filter", "long", "long-when-encoded"],
)
def test_invalid_saved_filters_are_refused(browser: Client, fields: dict[str, str], message: str) -> None:
    answer = save(browser, **fields, follow=True)
    assert answer.status_code == 200
    assert message in answer.content.decode()
    assert not SavedFilter.objects.exists()


@pytest.mark.parametrize("page", ["", "home", "nothing", "plans:detail", "https://example.org", "audits:create"])
def test_saved_filters_require_a_list(browser: Client, page: str) -> None:
    assert save(browser, page=page).status_code == 404
    assert not SavedFilter.objects.exists()


def test_name_of_saved_filters_is_escaped(browser: Client) -> None:
    save(browser, name="<b>\u202eweb")
    page = show(browser)
    assert "&lt;b&gt;" in page
    assert "U+202E" in page


def test_saving_requires_a_login(client: Client) -> None:
    assert save(client)["Location"].startswith(reverse("login"))
    assert not SavedFilter.objects.exists()


def test_filters_are_deleted_with_their_account(browser: Client, cloud_admin: User) -> None:
    save(browser)
    cloud_admin.delete()
    assert not SavedFilter.objects.exists()


@pytest.mark.parametrize("number", [0, 10])
def test_list_takes_one_query_for_saved_filters(browser: Client, django_assert_num_queries: Any, number: int) -> None:
    make_server("web-1")
    for place in range(number):
        save(browser, f"filter {place}")
    browser.get(reverse(LIST))  # The messages of the session.
    with django_assert_num_queries(7):
        assert show(browser).count('class="delete"') == number
