"""The buttons Suspend, Resume and Cancel on the pages of actions and plans."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from actions.models import Action
from plans.models import ActionPlan
from tests.builders import action, make_plan

pytestmark = pytest.mark.django_db


@pytest.fixture
def administrator(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def make_action(state: str = "ONGOING", **columns: Any) -> Action:
    plan = make_plan({"a": []}, state="ONGOING")
    plan.actions.update(state=state, **columns)
    return plan.actions.get()


def page_of(client: Client, one: Action | ActionPlan) -> str:
    name = "actions:detail" if isinstance(one, Action) else "plans:detail"
    return client.get(reverse(name, args=[one.uuid])).content.decode()


def offered(text: str) -> set[str]:
    return {word for word in ("suspend", "resume", "cancel") if f'id="{word}"' in text}


@pytest.mark.parametrize(
    ("state", "control", "buttons"),
    [
        ("PENDING", None, {"cancel"}),
        ("ONGOING", None, {"suspend", "cancel"}),
        ("ONGOING", "SUSPEND", {"resume", "cancel"}),
        ("ONGOING", "CANCEL", set()),
        ("SUSPENDED", None, {"resume", "cancel"}),
        ("SUSPENDED", "RESUME", {"suspend", "cancel"}),
        ("CANCELLING", None, set()),
        ("SUCCEEDED", None, set()),
    ],
)
def test_action_page_has_the_buttons_allowed_in_its_state(
    administrator: Client, state: str, control: str | None, buttons: set[str]
) -> None:
    assert offered(page_of(administrator, make_action(state, control=control))) == buttons


def test_action_that_can_be_skipped_has_no_cancel_button(administrator: Client) -> None:
    plan = make_plan({"a": []})
    text = page_of(administrator, plan.actions.get())
    assert "Skip this action" in text
    assert offered(text) == set()


def test_action_page_shows_the_state_once(administrator: Client) -> None:
    text = page_of(administrator, make_action("PENDING"))
    assert "PENDING" in text
    assert "INIT" not in text


def test_pending_signal_is_shown(administrator: Client) -> None:
    one = make_action(control="SUSPEND")
    assert "takes effect at the next checkpoint" in page_of(administrator, one)
    assert "SUSPEND takes effect at the next checkpoint." in page_of(administrator, one.action_plan)


@pytest.mark.parametrize(
    ("state", "button", "control", "words"),
    [
        ("ONGOING", "suspend", "SUSPEND", "The action will pause at its next checkpoint"),
        ("SUSPENDED", "resume", "RESUME", "Action resumed."),
        ("ONGOING", "cancel", "CANCEL", "The action will be aborted at its next checkpoint."),
    ],
)
def test_button_sends_its_signal_and_returns_to_the_action(
    administrator: Client, state: str, button: str, control: str, words: str
) -> None:
    one = make_action(state)
    answer = administrator.post(reverse(f"actions:{button}", args=[one.uuid]), follow=True)
    assert answer.redirect_chain[-1][0] == reverse("actions:detail", args=[one.uuid])
    assert words in answer.content.decode()
    assert Action.objects.get().control == control


def test_pending_action_is_cancelled_immediately(administrator: Client) -> None:
    one = make_action("PENDING")
    answer = administrator.post(reverse("actions:cancel", args=[one.uuid]), follow=True)
    assert "Action cancelled." in answer.content.decode()
    assert Action.objects.get().status_message == "Action was cancelled by alice."


def test_cancel_requires_confirmation(administrator: Client) -> None:
    answer = administrator.get(reverse("actions:cancel", args=[make_action().uuid]))
    assert "Cancel this action?" in answer.content.decode()
    assert "A cancelled action cannot be restored" in answer.content.decode()
    assert Action.objects.get().control is None


def test_signal_to_an_ended_action_is_refused_with_its_state(administrator: Client) -> None:
    one = make_action("SUCCEEDED")
    answer = administrator.post(reverse("actions:suspend", args=[one.uuid]), follow=True)
    assert "Cannot suspend the action: nop a is SUCCEEDED (updated" in answer.content.decode()


def test_plan_page_has_signal_buttons_for_running_actions(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": [], "c": []}, state="ONGOING")
    for name, state in (("a", "ONGOING"), ("b", "SUSPENDED")):
        Action.objects.filter(pk=action(plan, name).pk).update(state=state)
    text = page_of(administrator, plan)
    assert f'id="suspend-{action(plan, "a").uuid}"' in text
    assert f'id="resume-{action(plan, "b").uuid}"' in text
    assert text.count('id="cancel-') == 2


def test_button_on_the_plan_page_returns_to_the_plan_page(administrator: Client) -> None:
    one = make_action()
    answer = administrator.post(reverse("actions:suspend", args=[one.uuid]), {"page": "plan"})
    assert answer.url == f"{reverse('plans:detail', args=[one.action_plan.uuid])}#action-{str(one.uuid)[:8]}"


@pytest.mark.parametrize("number", [1, 30])
def test_query_count_does_not_depend_on_the_number_of_buttons(
    administrator: Client, django_assert_max_num_queries: Any, number: int
) -> None:
    plan = make_plan({f"action {order}": [] for order in range(number)}, state="ONGOING")
    plan.actions.update(state="ONGOING")
    with django_assert_max_num_queries(20):
        page_of(administrator, plan)


@pytest.mark.parametrize(
    ("state", "suspended_by", "buttons"),
    [
        ("RECOMMENDED", None, {"cancel"}),
        ("PENDING", None, {"suspend", "cancel"}),
        ("ONGOING", None, {"suspend", "cancel"}),
        ("ONGOING", "alice", {"resume", "cancel"}),
        ("CANCELLING", "alice", set()),
        ("SUCCEEDED", "alice", set()),
    ],
)
def test_plan_page_has_the_buttons_allowed_in_its_state(
    administrator: Client, state: str, suspended_by: str | None, buttons: set[str]
) -> None:
    plan = make_plan({"a": []}, state=state, suspended_by=suspended_by)
    assert offered(page_of(administrator, plan)) == buttons


def test_plan_is_suspended_and_resumed_and_its_page_names_the_user(administrator: Client) -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    text = administrator.post(reverse("plans:suspend", args=[plan.uuid]), follow=True).content.decode()
    assert "Suspended by <strong><bdi>alice</bdi></strong>" in text
    text = administrator.post(reverse("plans:resume", args=[plan.uuid]), follow=True).content.decode()
    assert "Suspended by" not in text
    assert ActionPlan.objects.get().suspended_by is None


@pytest.mark.parametrize("name", ["actions:suspend", "actions:resume", "actions:cancel"])
def test_readers_see_no_signal_buttons_and_cannot_signal_actions(client: Client, reader: User, name: str) -> None:
    client.force_login(reader)
    one = make_action()
    assert offered(page_of(client, one)) == offered(page_of(client, one.action_plan)) == set()
    assert client.post(reverse(name, args=[one.uuid])).status_code == 403


@pytest.mark.parametrize("name", ["plans:suspend", "plans:resume"])
def test_readers_cannot_signal_plans(client: Client, reader: User, name: str) -> None:
    client.force_login(reader)
    assert client.post(reverse(name, args=[make_action().action_plan.uuid])).status_code == 403
