"""The number of rows of a list, and its sorting on narrow screens."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from tests.builders import make_plan, make_server
from watcher_site.console.pages import ListPage
from watcher_site.history import record
from watcher_site.request_context import CallingContext

pytestmark = pytest.mark.django_db
OPTION = re.compile(r'<option value="([^"]*)"\s*(selected)?>')
SORTING = re.compile(r'<form class="sorting".*?</form>', re.DOTALL)


@pytest.fixture
def browser(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def text(response: Any) -> str:
    return str(response.content.decode())


def sorting_of(page: str) -> str:
    found = SORTING.search(page)
    assert found
    return found[0]


def test_list_shows_the_range_and_the_number_of_rows(browser: Client) -> None:
    for number in range(60):
        make_server(f"web-{number}")
    address = reverse("cluster:servers")
    assert "1\N{EN DASH}50 of 60" in text(browser.get(address))
    assert "51\N{EN DASH}60 of 60" in text(browser.get(address, {"page": 2}))
    assert "1\N{EN DASH}1 of 1" in text(browser.get(address, {"name": "web-7"}))


def test_large_row_counts_have_group_separators(browser: Client) -> None:
    make_plan({str(number): [] for number in range(1001)})
    address = reverse("actions:list")
    assert "1\N{EN DASH}50 of 1,001" in text(browser.get(address))
    assert "1\N{EN DASH}50 von 1.001" in text(browser.get(address, headers={"accept-language": "de"}))


def test_history_rows_are_counted_up_to_a_limit(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watcher_site.console.paging.MOST_COUNTED", 100)
    for number in range(100):
        record("cluster.check", f"web-{number}", caller=CallingContext(user="rosa"))
    address = reverse("history:list")
    assert "1\N{EN DASH}50 of 100" in text(browser.get(address))
    record("cluster.check", "another", caller=CallingContext(user="rosa"))
    assert "1\N{EN DASH}50 of more than 100" in text(browser.get(address))
    assert "51\N{EN DASH}100 of more than 100" in text(browser.get(address, {"page": 2}))


def test_rows_of_every_list_are_counted_up_to_a_limit(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watcher_site.console.paging.MOST_COUNTED", 100)
    for number in range(101):
        make_server(f"web-{number}")
    address = reverse("cluster:servers")
    assert "1\N{EN DASH}50 of more than 100" in text(browser.get(address))
    assert "51\N{EN DASH}100 of more than 100" in text(browser.get(address, {"page": 3}))


def test_sort_form_keeps_the_filters(browser: Client) -> None:
    for name, memory in (("web-1", 1), ("web-2", 2), ("db-1", 3)):
        make_server(name, memory=memory)
    page = text(browser.get(reverse("cluster:servers"), {"name": "web", "sort": "-memory", "page": 1}))
    form = sorting_of(page)
    assert '<input type="hidden" name="name" value="web">' in form
    assert 'name="page"' not in form
    assert [value for value, selected in OPTION.findall(form) if selected] == ["-memory"]
    assert page.index(">web-2<") < page.index(">web-1<")


def test_default_order_is_a_choice_of_the_sort_form(browser: Client) -> None:
    make_server("web-1")
    page = text(browser.get(reverse("cluster:servers"), {"sort": ""}))
    assert [value for value, _ in OPTION.findall(sorting_of(page))][:3] == ["", "name", "-name"]


def test_filter_form_keeps_the_order(browser: Client) -> None:
    page = text(browser.get(reverse("cluster:servers"), {"sort": "-memory"}))
    assert (
        '<input type="hidden" name="sort" value="-memory">'
        in page.split('<form class="filters"')[1].split("</form>")[0]
    )


def test_empty_list_has_no_sort_form(browser: Client) -> None:
    assert SORTING.search(text(browser.get(reverse("cluster:servers")))) is None


def test_sort_form_of_a_plan_page_returns_to_the_actions(browser: Client) -> None:
    plan = make_plan({"a": [], "b": []})
    form = sorting_of(
        text(browser.get(reverse("plans:detail", args=[plan.uuid]), {"server": "", "action_type": "nop"}))
    )
    assert 'action="#actions-heading"' in form
    assert '<input type="hidden" name="action_type" value="nop">' in form


def test_pages_of_a_list_contain_each_row_once_although_its_values_are_equal(browser: Client) -> None:
    for number in range(160):
        make_server(f"web-{number:03}", memory=1024 * (number % 2 + 1))
    pages = [text(browser.get(reverse("cluster:servers"), {"sort": "-memory", "page": page})) for page in (1, 2, 3, 4)]
    assert len(set(re.findall(">(web-[0-9]{3})<", "".join(pages)))) == 160


def lists(patterns: Iterable[URLPattern | URLResolver]) -> Iterator[type[ListPage]]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from lists(pattern.url_patterns)
        elif issubclass(view := getattr(pattern.callback, "view_class", object), ListPage):
            yield view


def test_every_list_has_a_default_order(cloud_admin: User) -> None:
    request = RequestFactory().get("/")
    request.user = cloud_admin
    found = list(lists(get_resolver("watcher_site.console.urls").url_patterns))
    assert len(found) > 15
    for page in found:
        view = page()
        view.setup(request)
        assert view.get_queryset().ordered, page


def test_empty_result_has_one_link_that_clears_the_filters(browser: Client) -> None:
    assert text(browser.get(reverse("cluster:servers"), {"name": "none"})).count("Clear filters") == 1
    make_server("web-1")
    assert text(browser.get(reverse("cluster:servers"), {"name": "web"})).count("Clear filters") == 1
