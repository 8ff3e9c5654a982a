"""Filters of the list of actions: names, UUIDs and UUID prefixes, as the pages show them."""

from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from actions.models import Action
from cluster.models import Server
from plans.models import ActionPlan
from tests.builders import make_audit, make_node, make_plan, make_server

pytestmark = pytest.mark.django_db
NUMBERED = UUID("0dd1e5ab-1111-4222-8333-444455556666")


@pytest.fixture
def browser(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def act_on(target: Any, plan: ActionPlan | None = None, action_type: str = "migrate") -> Action:
    parameters = {"resource_id": str(target)}
    return Action.objects.create(
        action_plan=plan or make_plan({}), action_type=action_type, input_parameters=parameters
    )


def show(browser: Client, **filters: str) -> str:
    answer = browser.get(reverse("actions:list"), filters)
    assert answer.status_code == 200
    return str(answer.content.decode())


def shown(browser: Client, *actions: Action, **filters: str) -> list[bool]:
    page = show(browser, **filters)
    return [str(action.uuid) in page for action in actions]


@pytest.mark.parametrize("length", [8, 9, 20, 36])
def test_plan_filter_accepts_a_uuid_or_uuid_prefix(browser: Client, length: int) -> None:
    one, other = act_on("x"), act_on("x")
    plan = str(one.action_plan.uuid)[:length]
    assert shown(browser, one, other, action_plan=plan) == [True, False]


@pytest.mark.parametrize("text", ["Evening", "evening"])
def test_plan_filter_accepts_the_name_of_the_audit(browser: Client, text: str) -> None:
    one = act_on("x", make_plan({}, audit=make_audit("evening")))
    assert shown(browser, one, act_on("x"), action_plan=text) == [True, False]


def test_plan_filter_accepts_a_generated_name_as_the_list_shows_it(browser: Client) -> None:
    one = act_on("x", make_plan({}, audit=make_audit("dummy-2026-11-21T12:10:30.420311")))
    assert shown(browser, one, act_on("x"), action_plan="dummy 2026-11-21 12:10:30") == [True, False]


def test_plan_filter_accepts_the_operation_of_a_plan_without_an_audit(browser: Client) -> None:
    one = act_on(make_server("web-1").uuid, action_type="stop")
    assert shown(browser, one, act_on("x"), action_plan="stop web-1") == [True, False]


def test_ambiguous_plan_name_lists_the_matching_plans_at_the_field(browser: Client) -> None:
    audit = make_audit("evening")
    actions = [act_on("x", make_plan({}, audit=audit)) for _ in range(2)]
    page = show(browser, action_plan="evening")
    assert "Several match: evening" in page
    assert all(str(action.action_plan.uuid) in page for action in actions)
    assert "No results." in page


@pytest.mark.parametrize("text", ["nothing", "0dd1e5ab", str(NUMBERED), "1234567"])
@pytest.mark.parametrize("field", ["action_plan", "target"])
def test_unknown_name_is_reported_at_the_field(browser: Client, field: str, text: str) -> None:
    act_on("x")
    page = show(browser, **{field: text})
    assert f"{text} was not found." in page
    assert f'value="{text}"' in page


@pytest.mark.parametrize("form", ["web-1", "WEB-1", "0dd1e5ab", str(NUMBERED)])
def test_target_filter_accepts_the_name_or_uuid_of_a_server(browser: Client, form: str) -> None:
    server, other = make_server("web-1", uuid=NUMBERED), make_server("web-10")
    one, another = act_on(server.uuid), act_on(other.uuid)
    assert shown(browser, one, another, target=form) == [True, False]


def test_target_filter_finds_a_deleted_server_if_its_name_is_not_reused(browser: Client) -> None:
    old = make_server("web-1")
    before = act_on(old.uuid)
    Server.objects.soft_delete()
    assert shown(browser, before, target="web-1") == [True]
    after = act_on(make_server("web-1").uuid)
    assert shown(browser, before, after, target="web-1") == [False, True]


def test_target_filter_finds_actions_on_a_node_by_hostname_and_uuid(browser: Client) -> None:
    node = make_node("compute1")
    by_name, by_uuid = act_on("compute1"), act_on(node.uuid)
    assert shown(browser, by_name, by_uuid, target=str(node.uuid)) == [True, True]
    assert shown(browser, by_name, by_uuid, target="compute1") == [True, True]


def test_target_filter_accepts_a_stored_target_without_an_object(browser: Client) -> None:
    one, other = act_on("some host"), act_on("x")
    assert shown(browser, one, other, target="some host") == [True, False]


def test_text_filter_matches_names_uuids_and_types(browser: Client) -> None:
    one, other = act_on(make_server("web-1").uuid, action_type="stop"), act_on("x")
    for text in ("eb-", str(one.uuid)[:8], "sto"):
        assert shown(browser, one, other, text=text) == [True, False]


@pytest.mark.parametrize("text", ["stop", "STOP"])
def test_type_filter_ignores_case(browser: Client, text: str) -> None:
    one, other = act_on("x", action_type="stop"), act_on("x")
    assert shown(browser, one, other, action_type=text) == [True, False]


def test_type_filter_finds_a_type_that_is_no_longer_installed(browser: Client) -> None:
    one, other = act_on("x", action_type="Former"), act_on("x")
    assert shown(browser, one, other, action_type="Former") == [True, False]


@pytest.mark.parametrize("text", ["x" * 300, "a\0b"], ids=["long", "nul"])
@pytest.mark.parametrize("field", ["action_plan", "target", "text"])
def test_too_long_text_or_nul_character_is_refused(browser: Client, field: str, text: str) -> None:
    act_on("x")
    page = show(browser, **{field: text})
    assert "Ensure this value has at most" in page or "Null characters are not allowed" in page
