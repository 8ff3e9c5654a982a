"""The filters of lists take names, UUIDs and the beginnings of UUIDs, as the pages show them."""

from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db.models import Q
from django.test import Client
from django.urls import reverse

from tests.builders import (
    make_audit,
    make_cluster,
    make_member,
    make_node,
    make_plan,
    make_policy,
    make_profile,
    make_server,
    make_stack,
)
from watcher_site.console.lists.entries import first_and_last_values, match_requests
from watcher_site.database.records import uuid_range
from watcher_site.history import record
from watcher_site.request_context import CallingContext

pytestmark = pytest.mark.django_db
REQUEST = "req-1f2e3d4c-0000-4000-8000-123456789abc"
FIRST, SECOND = UUID("0dd1e5ab-1111-4222-8333-444455556666"), UUID("0dd1e5ab-1111-4222-8333-444455556667")
LISTS = {
    "audits:list": ("name", make_audit),
    "cluster:nodes": ("hostname", make_node),
    "cluster:servers": ("name", make_server),
    "clusters:list": ("name", make_cluster),
    "cluster:members": ("name", make_member),
    "cluster:policies": ("name", make_policy),
    "cluster:profiles": ("name", make_profile),
    "stacks:list": ("name", make_stack),
}


@pytest.fixture
def browser(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def show(browser: Client, page: str, **filters: str) -> str:
    answer = browser.get(reverse(page), filters)
    assert answer.status_code == 200
    return str(answer.content.decode())


@pytest.mark.parametrize("page", LISTS)
@pytest.mark.parametrize("text", ["0dd1e5ab", "0DD1E5AB-1111", str(FIRST), FIRST.hex, "wanted"])
def test_name_filter_accepts_names_and_uuid_prefixes(browser: Client, page: str, text: str) -> None:
    field, make = LISTS[page]
    make("is wanted", uuid=FIRST)
    make("another")
    assert "1\N{EN DASH}1 of 1" in show(browser, page, **{field: text})


@pytest.mark.parametrize("text", ["0dd1e5a", "0dd1e5ax", "0dd1e5abb"])
def test_short_or_invalid_uuid_prefix_is_matched_as_a_name(browser: Client, text: str) -> None:
    make_server("web", uuid=FIRST)
    assert "No results." in show(browser, "cluster:servers", name=text)


def test_list_is_filtered_by_the_uuid_of_a_related_object(browser: Client) -> None:
    node = make_node("compute1")
    make_server("web-1", node)
    make_server("web-2", make_node("compute2"))
    assert "1\N{EN DASH}1 of 1" in show(browser, "cluster:servers", node=str(node.uuid)[:8])


@pytest.mark.parametrize("field", ["plan", "audit"])
def test_plans_are_filtered_by_the_name_of_their_audit(browser: Client, field: str) -> None:
    make_plan({}, audit=make_audit("evening-2026-11-21T12:10:30.420311"))
    make_plan({}, audit=make_audit("morning"))
    for text in ("even", "evening 2026-11-21 12:10:30"):
        assert "1\N{EN DASH}1 of 1" in show(browser, "plans:list", **{field: text})


def test_plans_are_filtered_by_their_uuid_and_the_uuid_of_their_audit(browser: Client) -> None:
    audit = make_audit("evening")
    plan = make_plan({}, audit=audit)
    make_plan({}, audit=make_audit("morning"))
    assert "1\N{EN DASH}1 of 1" in show(browser, "plans:list", plan=str(plan.uuid)[:8])
    assert "1\N{EN DASH}1 of 1" in show(browser, "plans:list", audit=str(audit.uuid)[:8])


def note(event: str = "server.stop", target: Any = "web-1", request: str = "", **options: Any) -> None:
    record(event, target, caller=CallingContext(user="rosa", request_id=request), **options)


@pytest.mark.parametrize(
    "text", ["Start action plan", "start action plan", "action_plan.start", "Start", "Action plan", "action_plan"]
)
def test_history_filter_accepts_displayed_events_and_object_types(browser: Client, text: str) -> None:
    note("action_plan.start", make_plan({}))
    note("server.reset_state")
    assert "1\N{EN DASH}1 of 1" in show(browser, "history:list", deed=text)


def test_events_with_the_same_verb_are_listed_with_their_labels(browser: Client) -> None:
    note("action_plan.start", make_plan({}))
    note("server.start")
    message = "Several match: start action plan, start server. Enter one of them."
    assert message in show(browser, "history:list", deed="start")


def test_event_with_a_label_of_several_words_is_found(browser: Client) -> None:
    note("action_plan.start", make_plan({}))
    note("server.reset_state")
    assert "1\N{EN DASH}1 of 1" in show(browser, "history:list", deed="Reset state server")


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("deed", "Fly server", "No entry has the event or the object type Fly server."),
        ("deed", "x " * 100, "No entry has the event or the object type x x"),
        ("object", "0dd1e5ab", "0dd1e5ab was not found."),
        ("object", "db", "db was not found."),
        ("request_id", "req-2", "No entry has the request ID req-2"),
    ],
)
def test_text_without_matches_is_reported_at_the_field(browser: Client, field: str, text: str, message: str) -> None:
    note(request=REQUEST)
    assert message in show(browser, "history:list", **{field: text})


@pytest.mark.parametrize("text", [str(FIRST), "0dd1e5ab", "web-1"])
def test_history_is_filtered_by_the_name_or_a_uuid_prefix_of_an_object(browser: Client, text: str) -> None:
    note(target=make_server("web-1", uuid=FIRST))
    note(target="db")
    assert "1\N{EN DASH}1 of 1" in show(browser, "history:list", object=text)


def test_uuid_prefix_of_a_plan_finds_the_events_of_its_actions(browser: Client) -> None:
    plan = make_plan({"a": []})
    note("action.skip", plan.actions.get(), within=plan)
    assert "1\N{EN DASH}1 of 1" in show(browser, "history:list", object=str(plan.uuid)[:8])


def test_ambiguous_uuid_prefix_is_reported_at_the_field(browser: Client) -> None:
    for uuid in (FIRST, SECOND):
        note(target=make_server(f"web-{uuid}", uuid=uuid))
    assert f"Several match: {FIRST}, {SECOND}." in show(browser, "history:list", object="0dd1e5ab")


@pytest.mark.parametrize("text", [REQUEST, "req-1f2e3d4c", "req-1f2e3d4c…"])
def test_history_is_filtered_by_a_prefix_of_the_request_id(browser: Client, text: str) -> None:
    note(request=REQUEST)
    note(request="req-00000000-0000-4000-8000-123456789abc")
    assert "1\N{EN DASH}1 of 1" in show(browser, "history:list", request_id=text)


def test_ambiguous_request_id_prefix_is_reported_at_the_field(browser: Client) -> None:
    note(request=REQUEST)
    note(request=REQUEST.replace("abc", "abd"))
    assert "Several match" in show(browser, "history:list", request_id="req-1f2e3d4c")


@pytest.mark.parametrize("length", range(12, len(REQUEST)))
def test_every_prefix_of_a_request_id_matches_in_database_order(length: int) -> None:
    for other in ("req-1f2e3d4b-ffff-4fff-bfff-ffffffffffff", "req-1f2e3d4d-0000-4000-8000-000000000000"):
        note(request=other)
    note(request=REQUEST)
    assert {match.name for match in match_requests(REQUEST[:length])} == {REQUEST}


def test_uuid_range_covers_all_uuids_with_the_prefix() -> None:
    assert uuid_range("0dd1e5ab-1") == (
        UUID("0dd1e5ab-1000-0000-0000-000000000000"),
        UUID("0dd1e5ab-1fff-ffff-ffff-ffffffffffff"),
    )
    assert uuid_range("g") is None
    assert uuid_range("") is None


def test_first_and_last_values_take_two_queries(django_assert_num_queries: Any) -> None:
    for _ in range(3):
        note(request=REQUEST)
    with django_assert_num_queries(2):
        assert first_and_last_values("request_id", Q(request_id=REQUEST)) == {REQUEST}
