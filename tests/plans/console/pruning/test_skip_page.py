"""Skipping one or several actions in the console, and its refusals."""

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
def test_pending_actions_have_a_skip_button_until_the_plan_begins(
    administrator: Client, state: str, expected: int
) -> None:
    plan = make_plan({"a": [], "b": [], "c": []}, state=state)
    Action.objects.filter(pk=action(plan, "c").pk).update(state="SKIPPED")
    text = administrator.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
    assert text.count('name="only"') == expected
    assert text.count('name="actions"') == expected


def test_readers_see_no_skip_button_and_are_refused(client: Client, reader: User) -> None:
    plan = make_plan({"a": []})
    client.force_login(reader)
    assert 'name="only"' not in client.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
    response = client.post(reverse("plans:skip", args=[plan.uuid]), {"only": action(plan, "a").uuid, "confirmed": "1"})
    assert response.status_code == 403
    assert states(plan) == {"a": "PENDING"}


def test_skip_dialog_requests_a_reason_and_changes_nothing(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": []})
    text = send(administrator, plan, only=action(plan, "a").uuid)
    assert "Skip this action?" in text
    assert states(plan) == {"a": "PENDING", "b": "PENDING"}


def test_button_of_an_action_ignores_selected_actions(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": []})
    text = send(administrator, plan, only=action(plan, "a").uuid, actions=[action(plan, "b").uuid])
    assert str(action(plan, "b").uuid) not in text


def test_selected_actions_are_skipped_with_one_reason(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": [], "c": []})
    chosen = [action(plan, name).uuid for name in "ab"]
    assert "2 actions skipped." in send(administrator, plan, actions=chosen, reason="closing", confirmed="yes")
    assert states(plan) == {"a": "SKIPPED", "b": "SKIPPED", "c": "PENDING"}
    assert action(plan, "a").status_message == "Action skipped by user. Reason: closing"
    assert action(plan, "b").skipped_by == "alice"


def test_skip_in_a_started_plan_is_refused_with_the_reason(administrator: Client) -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    text = send(administrator, plan, actions=[action(plan, "a").uuid], confirmed="yes")
    assert "Actions of this plan can no longer be skipped: the plan is ONGOING (updated just now)." in text
    assert 'name="confirmed"' not in text
    assert states(plan) == {"a": "PENDING"}


def test_too_long_reason_is_refused(administrator: Client) -> None:
    plan = make_plan({"a": []})
    text = send(administrator, plan, actions=[action(plan, "a").uuid], reason="x" * 300, confirmed="yes")
    assert "at most 223 characters" in text
    assert states(plan) == {"a": "PENDING"}


@pytest.mark.parametrize("fields", [{}, {"actions": ["nonsense"]}, {"only": "\x00"}])
def test_form_without_an_action_is_refused(administrator: Client, fields: dict[str, Any]) -> None:
    assert "Select at least one action." in send(administrator, make_plan({"a": []}), **fields)


def test_skip_returns_to_the_page_and_the_row_of_the_table(administrator: Client) -> None:
    plan = make_plan({"a": []})
    fields = {"only": str(action(plan, "a").uuid), "confirmed": "yes", "place": "page=2&sort=state"}
    response = administrator.post(reverse("plans:skip", args=[plan.uuid]), fields)
    row = f"#action-{str(action(plan, 'a').uuid)[:8]}"
    assert response.headers["Location"] == f"{reverse('plans:detail', args=[plan.uuid])}?page=2&sort=state{row}"


def test_skip_does_not_redirect_to_another_site(administrator: Client) -> None:
    plan = make_plan({"a": []})
    response = administrator.post(reverse("plans:skip", args=[plan.uuid]), {"place": "//evil.example/\n"})
    assert response.headers["Location"].startswith(reverse("plans:detail", args=[plan.uuid]))


def test_action_of_another_plan_is_not_skipped(administrator: Client) -> None:
    plan, other = make_plan({"a": []}), make_plan({"a": []})
    text = send(administrator, plan, actions=[action(other, "a").uuid], confirmed="yes")
    assert "1 action not found." in text
    assert states(other) == {"a": "PENDING"}


def test_action_skipped_concurrently_is_named_with_user_time_and_reason(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": []})
    skip_action(action(plan, "a").uuid, "bob", "month-end closing")
    uuids = [action(plan, name).uuid for name in "ab"]
    text = send(administrator, plan, actions=uuids, reason="audit week", confirmed="yes")
    assert "nop a was skipped by bob just now. Reason: month-end closing" in text
    assert "No actions were skipped." in text
    assert states(plan) == {"a": "SKIPPED", "b": "PENDING"}


def test_reason_is_text_when_no_action_can_be_skipped_any_more(administrator: Client) -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    text = send(administrator, plan, actions=[action(plan, "a").uuid], reason="audit week", confirmed="yes")
    assert ("No actions left to skip" in text, "Reason that you entered: audit week" in text) == (True, True)
    assert "<textarea" not in text


def test_refused_form_keeps_the_reason_and_the_remaining_actions(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": []})
    skip_action(action(plan, "a").uuid, "bob")
    uuids = [action(plan, name).uuid for name in "ab"]
    text = send(administrator, plan, actions=uuids, reason="audit week", confirmed="yes")
    assert "audit week</textarea>" in text
    assert re.findall(r'name="actions" value="(.*?)"', text) == [str(action(plan, "b").uuid)]


def test_dialog_reports_actions_that_cannot_be_skipped(administrator: Client) -> None:
    plan = make_plan({"a": []})
    skip_action(action(plan, "a").uuid, "bob")
    text = send(administrator, plan, only=action(plan, "a").uuid)
    assert "was skipped by bob just now. No reason given." in text
    assert "No actions left to skip" in text


def log_in(client: Client, page: str) -> str:
    """Submit the login page with its hidden fields, as a browser does, and return the resulting page."""
    hidden = dict(re.findall(r'type="hidden"\s+name="(\w+)"\s+value="(.*?)"', page))
    fields = {name: html.unescape(value) for name, value in hidden.items()}
    person = {"username": "alice", "password": "alice-password"}
    return client.post(reverse("login"), {**fields, **person}, follow=True).content.decode()


def test_form_sent_after_a_logout_is_shown_again_after_the_login(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": []})
    administrator.logout()
    page = send(administrator, plan, actions=[action(plan, "b").uuid], reason="audit week", confirmed="yes")
    text = log_in(administrator, page)
    assert "audit week</textarea>" in text
    assert re.findall(r'name="actions" value="(.*?)"', text) == [str(action(plan, "b").uuid)]
    assert states(plan) == {"a": "PENDING", "b": "PENDING"}


def test_wrong_password_keeps_the_form(administrator: Client) -> None:
    plan = make_plan({"a": []})
    administrator.logout()
    page = send(administrator, plan, actions=[action(plan, "a").uuid], reason="audit week", confirmed="yes")
    kept = html.unescape(re.findall(r'name="kept" value="(.*?)"', page)[0])
    again = administrator.post(reverse("login"), {"username": "alice", "password": "?", "kept": kept}).content.decode()
    assert kept in html.unescape(again)


def test_kept_form_is_shown_only_once(administrator: Client) -> None:
    plan = make_plan({"a": []})
    administrator.logout()
    log_in(administrator, send(administrator, plan, actions=[action(plan, "a").uuid], reason="x", confirmed="yes"))
    response = administrator.get(reverse("plans:skip", args=[plan.uuid]))
    assert response.headers["Location"] == reverse("plans:detail", args=[plan.uuid])


@pytest.mark.parametrize(("origin", "kept"), [("http://testserver", True), ("http://evil.example", False)])
def test_form_of_an_earlier_session_is_shown_again_only_from_the_same_origin(
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
