"""Skipping and restoring all actions of a plan that match the filters, and the boxes of skipped actions."""

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


def test_the_page_offers_to_skip_all_that_match_over_its_pages(administrator: Client, plan: ActionPlan) -> None:
    text = administrator.get(f"{reverse('plans:detail', args=[plan.uuid])}?{PLACE}").content.decode()
    assert "Skip all 12 matching…" in text
    assert "Select all actions on this page" in text


def test_the_first_step_names_the_number_and_changes_nothing(administrator: Client, plan: ActionPlan) -> None:
    text = send(administrator, "skip", plan).content.decode()
    assert "Skip all 12 matching actions?" in text
    assert "12 \N{MULTIPLICATION SIGN} nop" in text
    assert skipped(plan) == set()


def test_all_that_match_are_skipped_with_one_reason(administrator: Client, plan: ActionPlan) -> None:
    response = confirm(administrator, "skip", plan, reason="closing")
    assert "12 actions skipped." in response.content.decode()
    assert response.redirect_chain[-1][0].endswith(f"?{PLACE}#actions-heading")
    assert skipped(plan) == MATCHING
    assert action(plan, "2").status_message == "Action skipped by user. Reason: closing"
    assert HistoryEntry.objects.filter(deed="action.skip").count() == 12


def test_a_filter_that_is_not_valid_skips_nothing(administrator: Client, plan: ActionPlan) -> None:
    text = send(administrator, "skip", plan, place="state=GREEN").content.decode()
    assert "No actions left to skip" in text
    assert skipped(plan) == set()


def test_other_matching_actions_than_the_confirmed_ones_are_shown_again(
    administrator: Client, plan: ActionPlan
) -> None:
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


def test_as_many_others_are_not_taken_for_the_confirmed_ones(administrator: Client, plan: ActionPlan) -> None:
    dialog = send(administrator, "skip", plan).content.decode()
    confirmed = re.search(r'name="confirmed" value="(\w+)"', dialog)[1]
    skip_action(action(plan, "2").uuid, "bob")
    Action.objects.filter(pk=action(plan, "5").pk).update(input_parameters={"message": "52"})
    assert send(administrator, "skip", plan, confirmed=confirmed).status_code == 409
    assert skipped(plan) == {"2"}


def test_nothing_matches_in_a_plan_that_began(administrator: Client, plan: ActionPlan) -> None:
    ActionPlan.objects.update(state="ONGOING")
    text = send(administrator, "skip", plan, confirmed="x").content.decode()
    assert "Actions of this plan can no longer be skipped: the plan is ONGOING" in text
    assert skipped(plan) == set()


def test_all_that_match_are_restored_after_a_question(administrator: Client, plan: ActionPlan) -> None:
    skip_actions(plan, plan.actions.values_list("uuid", flat=True), "alice")
    assert "Restore 12 actions?" in send(administrator, "restore", plan).content.decode()
    assert len(skipped(plan)) == 30
    assert "12 actions restored." in confirm(administrator, "restore", plan).content.decode()
    assert len(skipped(plan)) == 18


def test_what_was_skipped_automatically_is_left_out_of_all_that_match(administrator: Client, plan: ActionPlan) -> None:
    skip_actions(plan, plan.actions.values_list("uuid", flat=True), "alice")
    Action.objects.filter(pk=action(plan, "2").pk).update(skipped_by=None)
    confirm(administrator, "restore", plan)
    assert "2" in skipped(plan)
    assert len(skipped(plan)) == 19


def test_the_selected_skipped_rows_are_restored_at_once(administrator: Client, plan: ActionPlan) -> None:
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


def test_no_selected_rows_are_no_restored_ones(administrator: Client, plan: ActionPlan) -> None:
    url = reverse("plans:restore", args=[plan.uuid])
    assert "Select at least one action." in administrator.post(url, {"place": PLACE}, follow=True).content.decode()


def test_a_reader_may_not_skip_all_that_match(client: Client, reader: User, plan: ActionPlan) -> None:
    client.force_login(reader)
    assert send(client, "skip", plan, confirmed="x").status_code == 403
    assert send(client, "restore", plan, confirmed="x").status_code == 403
    assert "matching…" not in client.get(reverse("plans:detail", args=[plan.uuid])).content.decode()


@pytest.mark.parametrize("size", [30, 100])
def test_skipping_all_that_match_takes_the_same_queries_whatever_their_number(
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
