"""Skipping and restoring all actions of a plan that match the filters, or selected skipped actions."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from actions.models import Action
from actions.operations.skipping import skip_action, skip_actions
from plans.models import ActionPlan
from tests.builders import action, make_plan
from watcher_site.models import HistoryEntry


@pytest.fixture
def administrator(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


@pytest.fixture
def plan(db: None) -> ActionPlan:
    """A plan with 30 actions, more than a page of 25, of which twelve contain the digit 2."""
    return make_plan({str(number): [] for number in range(30)})


PLACE = "server=2&per_page=25"


def send(client: Client, verb: str, plan: ActionPlan, **fields: Any) -> HttpResponse:
    fields = {"all": "matching", "place": PLACE, **fields}
    return client.post(reverse(f"plans:{verb}", args=[plan.uuid]), fields, follow=True)


def confirm(client: Client, verb: str, plan: ActionPlan, **fields: Any) -> HttpResponse:
    """Send the form of the dialog that a button opens."""
    dialog = send(client, verb, plan).content.decode()
    confirmed = re.search(r'name="confirmed" value="(\w+)"', dialog)[1]
    return send(client, verb, plan, confirmed=confirmed, **fields)


def skipped(plan: ActionPlan) -> set[str]:
    return {one.input_parameters["message"] for one in plan.actions.filter(state="SKIPPED")}


MATCHING = {"2", "12", *(f"2{number}" for number in range(10))}


def test_plan_page_offers_to_skip_all_matching_actions_of_all_pages(administrator: Client, plan: ActionPlan) -> None:
    text = administrator.get(f"{reverse('plans:detail', args=[plan.uuid])}?{PLACE}").content.decode()
    assert "Skip all 12 matching…" in text
    assert "Select all actions on this page" in text


def test_skip_dialog_shows_the_number_and_changes_nothing(administrator: Client, plan: ActionPlan) -> None:
    text = send(administrator, "skip", plan).content.decode()
    assert "Skip all 12 matching actions?" in text
    assert "12 \N{MULTIPLICATION SIGN} nop" in text
    assert skipped(plan) == set()


def test_all_matching_actions_are_skipped_with_one_reason(administrator: Client, plan: ActionPlan) -> None:
    response = confirm(administrator, "skip", plan, reason="closing")
    assert "12 actions skipped." in response.content.decode()
    assert response.redirect_chain[-1][0].endswith(f"?{PLACE}#actions-heading")
    assert skipped(plan) == MATCHING
    assert action(plan, "2").status_message == "Action skipped by user. Reason: closing"
    assert HistoryEntry.objects.filter(deed="action.skip").count() == 12


def test_invalid_filter_skips_no_actions(administrator: Client, plan: ActionPlan) -> None:
    text = send(administrator, "skip", plan, place="state=GREEN").content.decode()
    assert "No actions left to skip" in text
    assert skipped(plan) == set()


def test_changed_matches_are_shown_again_for_confirmation(administrator: Client, plan: ActionPlan) -> None:
    dialog = send(administrator, "skip", plan).content.decode()
    confirmed = re.search(r'name="confirmed" value="(\w+)"', dialog)[1]
    skip_action(action(plan, "2").uuid, "bob")
    response = send(administrator, "skip", plan, confirmed=confirmed, reason="closing")
    text = response.content.decode()
    assert response.status_code == 409
    assert "The actions that match the filters have changed since they were shown." in text
    assert "Skip all 11 matching actions?" in text
    assert "closing</textarea>" in text
    assert skipped(plan) == {"2"}


def test_equal_number_of_other_matches_requires_another_confirmation(administrator: Client, plan: ActionPlan) -> None:
    dialog = send(administrator, "skip", plan).content.decode()
    confirmed = re.search(r'name="confirmed" value="(\w+)"', dialog)[1]
    skip_action(action(plan, "2").uuid, "bob")
    Action.objects.filter(pk=action(plan, "5").pk).update(input_parameters={"message": "52"})
    assert send(administrator, "skip", plan, confirmed=confirmed).status_code == 409
    assert skipped(plan) == {"2"}


def test_matching_actions_of_a_started_plan_cannot_be_skipped(administrator: Client, plan: ActionPlan) -> None:
    ActionPlan.objects.update(state="ONGOING")
    text = send(administrator, "skip", plan, confirmed="x").content.decode()
    assert "Actions of this plan can no longer be skipped: the plan is ONGOING" in text
    assert skipped(plan) == set()


def test_all_matching_actions_are_restored_after_confirmation(administrator: Client, plan: ActionPlan) -> None:
    skip_actions(plan, plan.actions.values_list("uuid", flat=True), "alice")
    assert "Restore 12 actions?" in send(administrator, "restore", plan).content.decode()
    assert len(skipped(plan)) == 30
    assert "12 actions restored." in confirm(administrator, "restore", plan).content.decode()
    assert len(skipped(plan)) == 18


def test_automatically_skipped_actions_are_not_restored_with_all_matching(
    administrator: Client, plan: ActionPlan
) -> None:
    skip_actions(plan, plan.actions.values_list("uuid", flat=True), "alice")
    Action.objects.filter(pk=action(plan, "2").pk).update(skipped_by=None)
    confirm(administrator, "restore", plan)
    assert "2" in skipped(plan)
    assert len(skipped(plan)) == 19


def test_selected_skipped_actions_are_restored(administrator: Client, plan: ActionPlan) -> None:
    chosen = [action(plan, name).uuid for name in "123"]
    skip_actions(plan, chosen, "alice")
    page = administrator.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
    assert page.count('name="skipped"') == 3
    url = reverse("plans:restore", args=[plan.uuid])
    response = administrator.post(
        url, {"skipped": chosen[:2], "actions": [action(plan, "4").uuid], "place": PLACE}, follow=True
    )
    assert "2 actions restored." in response.content.decode()
    assert f"?{PLACE}#action-" in response.redirect_chain[-1][0]
    assert skipped(plan) == {"3"}


def test_restore_without_a_selection_is_refused(administrator: Client, plan: ActionPlan) -> None:
    url = reverse("plans:restore", args=[plan.uuid])
    assert "Select at least one action." in administrator.post(url, {"place": PLACE}, follow=True).content.decode()


def test_readers_cannot_skip_or_restore_matching_actions(client: Client, reader: User, plan: ActionPlan) -> None:
    client.force_login(reader)
    assert send(client, "skip", plan, confirmed="x").status_code == 403
    assert send(client, "restore", plan, confirmed="x").status_code == 403
    assert "matching…" not in client.get(reverse("plans:detail", args=[plan.uuid])).content.decode()


@pytest.mark.parametrize("size", [30, 100])
def test_skip_query_count_does_not_depend_on_the_number_of_matching_actions(
    administrator: Client, django_assert_max_num_queries: Any, size: int
) -> None:
    plan = make_plan({str(number): [] for number in range(size)})
    dialog = send(administrator, "skip", plan, place="").content.decode()
    fields = {
        "all": "matching",
        "place": "",
        "reason": "closing",
        "confirmed": re.search(r'name="confirmed" value="(\w+)"', dialog)[1],
    }
    with django_assert_max_num_queries(16):
        administrator.post(reverse("plans:skip", args=[plan.uuid]), fields)
    assert plan.actions.filter(state="SKIPPED").count() == size
