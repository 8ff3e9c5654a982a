"""Skipping in the console: one action or many, with a reason, and what happens when it cannot be done."""

import html
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from actions.models import Action
from actions.operations.skipping import skip_action
from plans.models import ActionPlan
from tests.builders import action, make_plan


@pytest.fixture
def administrator(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def send(client: Client, plan: ActionPlan, **fields: Any) -> str:
    return client.post(reverse("plans:skip", args=[plan.uuid]), fields, follow=True).content.decode()


def states(plan: ActionPlan) -> dict[str, str]:
    return {one.input_parameters["message"]: one.state for one in plan.actions.all()}


@pytest.mark.parametrize(("state", "expected"), [("RECOMMENDED", 2), ("PENDING", 2), ("ONGOING", 0), ("SUCCEEDED", 0)])
def test_every_pending_action_has_a_button_while_the_plan_can_be_pruned(
    administrator: Client, state: str, expected: int
) -> None:
    plan = make_plan({"a": [], "b": [], "c": []}, state=state)
    Action.objects.filter(pk=action(plan, "c").pk).update(state="SKIPPED")
    text = administrator.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
    assert text.count('name="only"') == expected
    assert text.count('name="actions"') == expected


def test_a_reader_finds_no_skip_button_and_is_refused(client: Client, reader: User) -> None:
    plan = make_plan({"a": []})
    client.force_login(reader)
    assert 'name="only"' not in client.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
    response = client.post(reverse("plans:skip", args=[plan.uuid]), {"only": action(plan, "a").uuid, "confirmed": "1"})
    assert response.status_code == 403
    assert states(plan) == {"a": "PENDING"}


def test_the_first_step_asks_for_the_reason_and_changes_nothing(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": []})
    text = send(administrator, plan, only=action(plan, "a").uuid)
    assert "Skip this action?" in text
    assert states(plan) == {"a": "PENDING", "b": "PENDING"}


def test_the_button_beside_an_action_leaves_the_boxes_aside(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": []})
    text = send(administrator, plan, only=action(plan, "a").uuid, actions=[action(plan, "b").uuid])
    assert str(action(plan, "b").uuid) not in text


def test_many_are_skipped_with_one_reason(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": [], "c": []})
    chosen = [action(plan, name).uuid for name in "ab"]
    assert "2 actions skipped." in send(administrator, plan, actions=chosen, reason="closing", confirmed="yes")
    assert states(plan) == {"a": "SKIPPED", "b": "SKIPPED", "c": "PENDING"}
    assert action(plan, "a").status_message == "Action skipped by user. Reason: closing"
    assert action(plan, "b").skipped_by == "alice"


def test_a_plan_that_began_meanwhile_refuses_and_says_why(administrator: Client) -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    text = send(administrator, plan, actions=[action(plan, "a").uuid], confirmed="yes")
    assert "Actions of this plan can no longer be skipped: the plan is ONGOING (updated just now)." in text
    assert 'name="confirmed"' not in text
    assert states(plan) == {"a": "PENDING"}


def test_a_reason_that_does_not_fit_has_to_be_typed_again(administrator: Client) -> None:
    plan = make_plan({"a": []})
    text = send(administrator, plan, actions=[action(plan, "a").uuid], reason="x" * 300, confirmed="yes")
    assert "at most 223 characters" in text
    assert states(plan) == {"a": "PENDING"}


@pytest.mark.parametrize("fields", [{}, {"actions": ["nonsense"]}, {"only": "\x00"}])
def test_a_form_that_names_no_action_says_so(administrator: Client, fields: dict[str, Any]) -> None:
    assert "Select at least one action." in send(administrator, make_plan({"a": []}), **fields)


def test_one_comes_back_to_the_page_of_the_table_and_to_the_row(administrator: Client) -> None:
    plan = make_plan({"a": []})
    fields = {"only": str(action(plan, "a").uuid), "confirmed": "yes", "place": "page=2&sort=state"}
    response = administrator.post(reverse("plans:skip", args=[plan.uuid]), fields)
    row = f"#action-{str(action(plan, 'a').uuid)[:8]}"
    assert response.headers["Location"] == f"{reverse('plans:detail', args=[plan.uuid])}?page=2&sort=state{row}"


def test_nobody_is_led_to_another_site(administrator: Client) -> None:
    plan = make_plan({"a": []})
    response = administrator.post(reverse("plans:skip", args=[plan.uuid]), {"place": "//evil.example/\n"})
    assert response.headers["Location"].startswith(reverse("plans:detail", args=[plan.uuid]))


def test_another_plans_action_is_not_skipped_here(administrator: Client) -> None:
    plan, other = make_plan({"a": []}), make_plan({"a": []})
    text = send(administrator, plan, actions=[action(other, "a").uuid], confirmed="yes")
    assert "1 action not found." in text
    assert states(other) == {"a": "PENDING"}


def test_what_another_tab_skipped_is_named_with_who_when_and_why(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": []})
    skip_action(action(plan, "a").uuid, "bob", "month-end closing")
    uuids = [action(plan, name).uuid for name in "ab"]
    text = send(administrator, plan, actions=uuids, reason="audit week", confirmed="yes")
    assert "nop a was skipped by bob just now. Reason: month-end closing" in text
    assert "No actions were skipped." in text
    assert states(plan) == {"a": "SKIPPED", "b": "PENDING"}


def test_the_reason_and_what_can_still_be_skipped_stay_in_the_form(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": []})
    skip_action(action(plan, "a").uuid, "bob")
    uuids = [action(plan, name).uuid for name in "ab"]
    text = send(administrator, plan, actions=uuids, reason="audit week", confirmed="yes")
    assert "audit week</textarea>" in text
    assert re.findall(r'name="actions" value="(.*?)"', text) == [str(action(plan, "b").uuid)]


def test_the_first_step_already_tells_what_cannot_be_skipped(administrator: Client) -> None:
    plan = make_plan({"a": []})
    skip_action(action(plan, "a").uuid, "bob")
    text = send(administrator, plan, only=action(plan, "a").uuid)
    assert "was skipped by bob just now. No reason given." in text
    assert "No actions left to skip" in text


def log_in(client: Client, page: str) -> str:
    """Fill in the login page as a browser does, with its hidden fields, and return the page that follows."""
    hidden = dict(re.findall(r'type="hidden"\s+name="(\w+)"\s+value="(.*?)"', page))
    fields = {name: html.unescape(value) for name, value in hidden.items()}
    person = {"username": "alice", "password": "alice-password"}
    return client.post(reverse("login"), {**fields, **person}, follow=True).content.decode()


def test_who_was_logged_out_meanwhile_finds_the_form_as_it_was(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": []})
    administrator.logout()
    page = send(administrator, plan, actions=[action(plan, "b").uuid], reason="audit week", confirmed="yes")
    text = log_in(administrator, page)
    assert "audit week</textarea>" in text
    assert re.findall(r'name="actions" value="(.*?)"', text) == [str(action(plan, "b").uuid)]
    assert states(plan) == {"a": "PENDING", "b": "PENDING"}


def test_a_mistyped_password_does_not_lose_the_form(administrator: Client) -> None:
    plan = make_plan({"a": []})
    administrator.logout()
    page = send(administrator, plan, actions=[action(plan, "a").uuid], reason="audit week", confirmed="yes")
    kept = html.unescape(re.findall(r'name="kept" value="(.*?)"', page)[0])
    again = administrator.post(reverse("login"), {"username": "alice", "password": "?", "kept": kept}).content.decode()
    assert kept in html.unescape(again)


def test_a_kept_form_comes_once(administrator: Client) -> None:
    plan = make_plan({"a": []})
    administrator.logout()
    log_in(administrator, send(administrator, plan, actions=[action(plan, "a").uuid], reason="x", confirmed="yes"))
    response = administrator.get(reverse("plans:skip", args=[plan.uuid]))
    assert response.headers["Location"] == reverse("plans:detail", args=[plan.uuid])


@pytest.mark.parametrize(("origin", "kept"), [("http://testserver", True), ("http://evil.example", False)])
def test_a_form_of_an_earlier_session_is_shown_again_if_it_is_our_own(
    cloud_admin: User, origin: str, kept: bool
) -> None:
    plan = make_plan({"a": []})
    client = Client(enforce_csrf_checks=True, headers={"Origin": origin})
    client.force_login(cloud_admin)
    fields = {"actions": [action(plan, "a").uuid], "reason": "audit week", "confirmed": "yes"}
    text = send(client, plan, **fields)
    assert ("audit week</textarea>" in text) == kept
    assert ("This form is no longer valid" in text) != kept
    assert states(plan) == {"a": "PENDING"}
