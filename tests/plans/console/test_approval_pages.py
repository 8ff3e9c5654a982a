"""The approval of plans on the pages of the console."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from actions.operations.dependencies import change_dependencies
from actions.operations.skipping import change_reason, restore_action, skip_action
from plans.models import ActionPlan
from tests.builders import action, make_audit, make_plan, make_strategy
from tests.conftest import person
from watcher_site.models import HistoryEntry

WAITING = "Waiting for approval: the plan can be started after another user has approved it."


@pytest.fixture(autouse=True)
def _approval_is_required(settings: Settings) -> None:
    settings.PLAN_APPROVAL = True


def log_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def alice(cloud_admin: User) -> Client:
    return log_in(cloud_admin)


@pytest.fixture
def bob(db: None) -> Client:
    return log_in(person("bob", "cloud-admin"))


def page(client: Client, plan: ActionPlan, **headers: str) -> str:
    return client.get(reverse("plans:detail", args=[plan.uuid]), headers=headers).content.decode()


def press(client: Client, verb: str, plan: ActionPlan, **fields: Any) -> str:
    """Press a button of the current page; ``shown_actions`` is the version of the actions on an earlier page."""
    if verb == "approve":
        fields = {"shown_actions": shown_actions(page(client, plan)), **fields}
    return client.post(reverse(f"plans:{verb}", args=[plan.uuid]), fields, follow=True).content.decode()


def shown_actions(text: str) -> str:
    version = re.search(r'name="shown_actions" value="(\w+)"', text)
    return version[1] if version else ""


def buttons(text: str) -> set[str]:
    """Return the ids of the buttons at the top of a page that can be pressed."""
    found = re.findall(r"<(?:a|button)\b[^>]*?\bid=\"([a-z-]+)\"[^>]*>", text)
    disabled = re.findall(r"<button\b[^>]*?\bid=\"([a-z-]+)\"\s+disabled", text)
    return set(found) - set(disabled)


def test_start_is_disabled_with_the_reason_until_the_approval(alice: Client) -> None:
    text = page(alice, make_plan({"a": []}))
    assert not {"start", "schedule"} & buttons(text)
    assert 'aria-describedby="approval"' in text
    assert WAITING in text


def test_start_is_disabled_for_the_user_who_approved_the_plan(bob: Client) -> None:
    plan = make_plan({"a": []})
    text = press(bob, "approve", plan)
    assert "start" not in buttons(text)
    assert "You have approved this plan. Another user can start it." in text


def test_other_users_can_start_an_approved_plan(alice: Client) -> None:
    text = page(alice, make_plan({"a": []}, approved_by="bob"))
    assert {"start", "schedule"} <= buttons(text)
    assert WAITING not in text


def test_page_shows_the_user_who_approved_the_plan(alice: Client, bob: Client) -> None:
    plan = make_plan({"a": []})
    press(bob, "approve", plan)
    text = " ".join(page(alice, plan).split())
    assert re.search(r"<dt>Approval</dt> <dd> .*? <span class=\"secondary\">by <bdi>bob</bdi></span>", text)


def test_approve_button_approves_the_plan(bob: Client) -> None:
    plan = make_plan({"a": []})
    assert "approve" in buttons(page(bob, plan))
    text = press(bob, "approve", plan)
    assert "Action plan approved. Another user can start it." in text
    assert ("approve" in buttons(text), "withdraw-approval" in buttons(text)) == (False, True)
    assert ActionPlan.objects.get().approved_by == "bob"


def test_withdraw_button_withdraws_the_approval(alice: Client) -> None:
    plan = make_plan({"a": []}, approved_by="bob")
    text = press(alice, "withdraw-approval", plan)
    assert "Approval withdrawn." in text
    assert ("approve" in buttons(text), "withdraw-approval" in buttons(text)) == (True, False)
    assert ActionPlan.objects.get().approved_by is None


@pytest.mark.parametrize("verb", ["start", "schedule"])
def test_start_without_an_approval_is_refused_with_a_message(alice: Client, verb: str) -> None:
    plan = make_plan({"a": []})
    text = press(alice, verb, plan, zone="UTC")
    assert "requires the approval of another user." in text
    assert ActionPlan.objects.get().state == "RECOMMENDED"


def test_refusal_is_shown_in_german_and_recorded_in_english(alice: Client) -> None:
    plan = make_plan({"a": []})
    answer = alice.post(reverse("plans:start", args=[plan.uuid]), headers={"accept-language": "de"}, follow=True)
    assert f"Aktionsplan {plan.uuid} braucht die Freigabe einer anderen Person." in answer.content.decode()
    entry = HistoryEntry.objects.get(outcome="refused")
    assert entry.message == f"Action plan {plan.uuid} requires the approval of another user."


@pytest.mark.parametrize("verb", ["approve", "withdraw-approval"])
def test_readers_see_no_buttons_of_approvals_and_are_refused(reader: User, verb: str) -> None:
    client = log_in(reader)
    plan = make_plan({"a": []}, approved_by=None if verb == "approve" else "bob")
    assert verb not in buttons(page(client, plan))
    assert client.post(reverse(f"plans:{verb}", args=[plan.uuid])).status_code == 403


def test_site_without_approvals_does_not_show_them(settings: Settings, alice: Client) -> None:
    settings.PLAN_APPROVAL = False
    text = page(alice, make_plan({"a": []}))
    assert "start" in buttons(text)
    assert "pproval" not in text


def test_part_of_the_page_is_sent_again_after_an_approval(alice: Client, bob: Client) -> None:
    plan = make_plan({"a": []})
    version = re.search(r'hx-ptag="([^"]*)"', page(alice, plan))
    press(bob, "approve", plan)
    text = page(alice, plan, **{"HX-Request": "true", "HX-PTag": version[1] if version else ""})
    assert "by <bdi>bob</bdi>" in text


def test_restore_is_not_offered_in_an_approved_plan_that_was_started(alice: Client) -> None:
    plan = make_plan({"a": [], "b": []}, approved_by="bob")
    skip_action(action(plan, "a").uuid, "alice")
    press(alice, "start", plan)
    one = action(plan, "a")
    assert 'id="restore"' not in alice.get(reverse("actions:detail", args=[one.uuid])).content.decode()
    text = alice.post(reverse("actions:restore", args=[one.uuid]), follow=True).content.decode()
    assert "The plan was approved and started: its actions can no longer be restored." in text


def skip_a(plan: ActionPlan) -> None:
    skip_action(action(plan, "a").uuid, "alice")


def restore_c(plan: ActionPlan) -> None:
    restore_action(action(plan, "c").uuid)


def exchange(plan: ActionPlan) -> None:
    skip_a(plan)
    restore_c(plan)


def make_b_wait(plan: ActionPlan) -> None:
    change_dependencies(action(plan, "b").uuid, lambda _: [action(plan, "a").uuid])


def make_plan_with_skip() -> ActionPlan:
    plan = make_plan({"a": [], "b": [], "c": []})
    skip_action(action(plan, "c").uuid, "alice")
    return plan


@pytest.mark.parametrize("change", [skip_a, restore_c, exchange, make_b_wait])
def test_approval_of_actions_that_have_changed_is_refused(bob: Client, change: Callable[[ActionPlan], None]) -> None:
    plan = make_plan_with_skip()
    earlier = shown_actions(page(bob, plan))
    change(plan)
    text = press(bob, "approve", plan, shown_actions=earlier)
    assert "have changed since they were shown. Review them before the approval." in text
    assert ActionPlan.objects.get().approved_by is None
    assert "Action plan approved." in press(bob, "approve", plan, shown_actions=shown_actions(text))


def test_approval_covers_actions_whose_skip_has_another_reason(bob: Client) -> None:
    plan = make_plan_with_skip()
    earlier = shown_actions(page(bob, plan))
    change_reason(action(plan, "c").uuid, "backup")
    assert "Action plan approved." in press(bob, "approve", plan, shown_actions=earlier)


def test_approval_without_the_version_of_the_page_is_refused(bob: Client) -> None:
    assert "have changed since they were shown." in press(bob, "approve", make_plan({"a": []}), shown_actions="")
    assert ActionPlan.objects.get().approved_by is None


def test_refused_approval_is_shown_in_german_and_recorded_in_english(bob: Client) -> None:
    plan = make_plan({"a": []})
    answer = bob.post(reverse("plans:approve", args=[plan.uuid]), headers={"accept-language": "de"}, follow=True)
    assert f"Die Aktionen von Aktionsplan {plan.uuid} haben sich geändert" in answer.content.decode()
    assert HistoryEntry.objects.get(outcome="refused").message.startswith("The actions of action plan")


@pytest.mark.parametrize("is_required", [False, True])
def test_plan_page_query_count_does_not_depend_on_approvals(
    settings: Settings, alice: Client, django_assert_num_queries: Any, is_required: bool
) -> None:
    plan = make_plan({"a": []}, audit=make_audit(), strategy=make_strategy())
    page(alice, plan)
    settings.PLAN_APPROVAL = is_required
    with django_assert_num_queries(14):
        page(alice, plan)


# The list


def listed(client: Client, **filters: str) -> str:
    return client.get(reverse("plans:list"), filters).content.decode()


def test_list_is_filtered_by_missing_approval(alice: Client) -> None:
    waiting = make_plan({"a": []})
    others = [make_plan({"a": []}, approved_by="bob"), make_plan({"a": []}, state="PENDING")]
    text = listed(alice, approval="missing")
    assert str(waiting.uuid) in text
    assert not [plan for plan in others if str(plan.uuid) in text]


def test_list_of_a_site_without_approvals_has_no_filter_by_approval(settings: Settings, alice: Client) -> None:
    assert 'name="approval"' in listed(alice)
    settings.PLAN_APPROVAL = False
    assert 'name="approval"' not in listed(alice)
